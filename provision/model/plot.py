"""A line through some points as SVG, in the colour of the text around it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from provision.model.quoting import Code, write_xml

WIDTH, HEIGHT = 480, 160
LEFT, RIGHT, TOP, BOTTOM = 56, 470, 14, 130


def line_plot(points: Sequence[tuple[str, float]], title: str) -> Code:
    """The values in their order, from 0; the label of the first and the last stands below. At least one point is needed."""
    top = max((value for _, value in points), default=0) or 1
    svg = ElementTree.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img"}
    )
    ElementTree.SubElement(svg, "title").text = title

    def place(index: int, value: float) -> tuple[float, float]:
        share = index / (len(points) - 1) if len(points) > 1 else 0.5
        return LEFT + (RIGHT - LEFT) * share, BOTTOM - (BOTTOM - TOP) * value / top

    def text(words: str, x: float, y: float, anchor: str) -> None:
        look = {"x": f"{x:.0f}", "y": f"{y:.0f}", "text-anchor": anchor, "font-size": "11", "fill": "currentColor"}
        ElementTree.SubElement(svg, "text", look).text = words

    axes = {"d": f"M{LEFT},{TOP} V{BOTTOM} H{RIGHT}", "fill": "none", "stroke": "currentColor", "opacity": "0.4"}
    ElementTree.SubElement(svg, "path", axes)
    places = [place(index, value) for index, (_, value) in enumerate(points)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    ElementTree.SubElement(svg, "polyline", {"points": line, "fill": "none", "stroke": "#2a7ab0", "stroke-width": "2"})
    for (x, y), (label, value) in zip(places, points, strict=True):
        dot = ElementTree.SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "4", "fill": "#2a7ab0"})
        ElementTree.SubElement(dot, "title").text = f"{label}: {value:g}"
    text(f"{top:g}", LEFT - 6, TOP + 4, "end")
    text("0", LEFT - 6, BOTTOM + 4, "end")
    text(points[0][0], LEFT, BOTTOM + 18, "start")
    if len(points) > 1:
        text(points[-1][0], RIGHT, BOTTOM + 18, "end")
    return write_xml(svg)
