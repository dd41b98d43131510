"""Builds foreload._foreload with CMake; everything else is in pyproject.toml."""
import os
import pathlib
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

TOP = pathlib.Path(__file__).resolve().parent


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve()
        build = pathlib.Path(self.build_temp).resolve()
        build.mkdir(parents=True, exist_ok=True)
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DFORELOAD_PYTHON=ON", f"-DFORELOAD_PYTHON_EXECUTABLE={sys.executable}",
                   "-DFORELOAD_APPS=OFF", "-DFORELOAD_TESTS=OFF", "-DFORELOAD_BENCHMARKS=OFF"]
        try:  # in an isolated build pybind11 is a Python package
            import pybind11
            options.append(f"-Dpybind11_DIR={pybind11.get_cmake_dir()}")
        except ImportError:
            pass
        subprocess.run(["cmake", "-S", TOP, "-B", build, *options], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "_foreload", "-j", str(os.cpu_count())], check=True)
        built = next((build / "python" / "foreload").glob("_foreload*.so"))
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(built), str(target))


setup(ext_modules=[Extension("foreload._foreload", [])], cmdclass={"build_ext": CMakeBuild})
