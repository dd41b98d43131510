#include "report/tone.h"

namespace foreload {

namespace {

Element swatch(const LegendEntry& entry) {
  Element picture("svg");
  picture.set("class", "swatch").set("viewBox", "0 0 24 14").set("aria-hidden", "true");
  const std::string tone(tone_class(entry.tone));
  if (entry.is_line) {
    picture.add(Element("path").set("class", "line " + tone).set("d", "M1 7L23 7"));
  } else {
    Element area("rect");
    area.set("class", "area " + tone).set("x", 1.0).set("y", 1.0).set("width", 22.0).set("height", 12.0);
    picture.add(area);
  }
  return picture;
}

}  // namespace

std::string_view tone_class(Tone tone) {
  switch (tone) {
    case Tone::kFirst:
      return "tone-1";
    case Tone::kSecond:
      return "tone-2";
    case Tone::kThird:
      return "tone-3";
    case Tone::kFourth:
      return "tone-4";
    case Tone::kQuiet:
      break;
  }
  return "tone-quiet";
}

Element legend(const std::vector<LegendEntry>& entries) {
  Element list("ul");
  list.set("class", "legend");
  for (const LegendEntry& entry : entries) {
    Element item("li");
    item.add(swatch(entry)).add(Element("span").text(entry.name));
    for (const Number& number : entry.numbers) item.add(Element("b").add(number_element(number)));
    list.add(item);
  }
  return list;
}

}  // namespace foreload
