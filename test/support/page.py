#!/usr/bin/env python3
"""Checks a page of `shoalc --report FILE.html` against the JSON report of the same compilation.

usage: page.py PAGE.html REPORT.json

The page is well formed, loads nothing, and says what the report says: peak, bytes sent, and a line per kind and axes.
What each collective sends adds up to the same bytes, what is in use at the peak, with the gaps, to the arena.
"""

import html.parser
import json
import re
import sys

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Checker(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []
        self.values = {}  # id -> title of the element
        self.totals = []  # cells of the table of totals, as (text, title)
        self.memory = []  # bytes by class: at the peak, and the most; then the gaps and the arena, at the peak
        self.explained = 0
        self.articles = 0
        self.cell = None

    def handle_starttag(self, tag, attributes, ends=False):
        attributes = dict(attributes)
        for name, value in attributes.items():
            if name in ("src", "srcset", "href", "xlink:href", "action", "data") and not value.startswith("#"):
                sys.exit(f"the page must load nothing, got: {tag} {name}={value!r}")
            if name.startswith("on"):
                sys.exit(f"no element may carry a script, got: {tag} {name}={value!r}")
        if tag in ("link", "iframe", "object", "embed", "base", "form"):
            sys.exit(f"the page must load nothing, got: <{tag}>")
        if "id" in attributes:
            if attributes["id"] in self.values:
                sys.exit(f"an id must be its element's own, got twice: {attributes['id']}")
            self.values[attributes["id"]] = attributes.get("title", "")
        if tag == "tr" and attributes.get("class") == "total":
            self.totals.append([])
        if tag == "td" and self.open[-1][1] == "total":
            self.cell = ["", attributes.get("title", "")]
            self.totals[-1].append(self.cell)
        if tag == "td" and "title" in attributes and any(name == "classes" for _, name in self.open):
            self.memory.append(number(attributes["title"]))
        if tag == "article":
            self.articles += 1
        if tag == "strong" and any(name == "article" for name, _ in self.open):
            self.explained += number(attributes["title"])
        if not ends and tag not in VOID:
            self.open.append((tag, attributes.get("class", "")))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes, ends=True)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            sys.exit(f"line {self.getpos()[0]}: </{tag}> must close <{self.open[-1][0] if self.open else ''}>")
        self.open.pop()
        if tag == "tr":
            self.cell = None

    def handle_data(self, text):
        if self.cell and any(name == "td" for name, _ in self.open):
            self.cell[0] += text
        if self.open and self.open[-1][0] == "style" and re.search(r"@import|url\((?!#)", text):
            sys.exit("the style sheet must load nothing")


def number(text):
    return int(re.sub(r"[^0-9]", "", text))


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: the page says {found}, the report {wanted}")


page = Checker()
page.feed(open(sys.argv[1], encoding="utf-8").read())
page.close()
if page.open:
    sys.exit(f"never closed: {page.open}")
report = json.load(open(sys.argv[2], encoding="utf-8"))
busiest = max(report["ranks"], key=lambda rank: sum(line["bytes"] for line in rank["collectives"]))
sent = sum(line["bytes"] for line in busiest["collectives"])
expect("peak", number(page.values["peak"]), max(rank["bytes"]["peak"] for rank in report["ranks"]))
*classes, gaps, arena = page.memory
expect("the arena", arena, number(page.values["peak"]))
expect("classes and gaps at the peak", sum(classes[::2]) + gaps, arena)
expect("bytes sent", number(page.values["sent"]), sent)
expect("totals", [(row[0][0], row[1][0], number(row[2][0]), number(row[3][1])) for row in page.totals],
       [(line["kind"], "".join(line["axes"]), line["count"], line["bytes"]) for line in busiest["collectives"]])
if page.articles or sent:
    expect("sum over collectives", page.explained, sent)
print(f"page: {len(page.totals)} totals, {page.articles} explained, {sent} bytes")
