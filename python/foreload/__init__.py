"""Foreload: data loading that removes stalls. `foreload.DataLoader` is torch's DataLoader over C++ threads."""
from ._foreload import version as __version__
from ._memory import set_memory_budget
from ._step import measure_step
from ._torchvision import from_torchvision
from .errors import (ConfigError, DataChanged, DatasetNotFound, ForeloadError, ForeloadWarning, LoaderClosed, OutOfMemory,
                     ReadError, SampleError, StaleIterator, StateMismatch)
from .loader import DataLoader, DatasetView
from .transforms import (Array, CenterCrop, CenterWindow, ColorJitter, ConvertImageDtype, CutMix, GaussianBlur, Grayscale, MixUp,
                         Normalize, Pad, PILToTensor, Ragged, RandAugment, RandomAffine, RandomCrop, RandomErasing,
                         RandomGrayscale, RandomHorizontalFlip, RandomResizedCrop, RandomRotation, RandomVerticalFlip,
                         RandomWindow, Resize, ToTensor, Transform, TrivialAugmentWide)

__all__ = [
    "Array", "CenterCrop", "CenterWindow", "ColorJitter", "ConfigError", "ConvertImageDtype", "CutMix", "DataChanged",
    "DataLoader", "DatasetNotFound", "DatasetView", "ForeloadError", "ForeloadWarning", "GaussianBlur", "Grayscale",
    "LoaderClosed", "MixUp", "Normalize", "OutOfMemory", "PILToTensor", "Pad", "Ragged", "RandAugment", "RandomAffine",
    "RandomCrop", "RandomErasing", "RandomGrayscale", "RandomHorizontalFlip", "RandomResizedCrop", "RandomRotation",
    "RandomVerticalFlip", "RandomWindow", "ReadError", "Resize", "SampleError", "StaleIterator", "StateMismatch", "ToTensor",
    "Transform", "TrivialAugmentWide", "from_torchvision", "measure_step", "set_memory_budget",
]
