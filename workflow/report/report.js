"use strict";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";  // a weight in 64 levels
const END = "</s>";

function make(tag, attributes, ...inner) {
  const element = Object.assign(document.createElement(tag), attributes);
  element.append(...inner);
  return element;
}

// --- alignment explorer ---------------------------------------------------------------------------------------------

function explorer(texts) {
  const find = (name) => document.getElementById(`explorer-${name}`);
  const form = find("form"), says = find("says"), rows = { source: find("source"), target: find("target") };
  const { text: textBox, system: systemBox, sentence: sentenceBox, before, after } = form.elements;
  let shown;  // source and target words, weights by target and source, gold links
  let chosen;  // side and index of the word that is looked at

  const text = () => texts[textBox.selectedIndex];
  const options = (box, names) => box.replaceChildren(...names.map((name) => make("option", { textContent: name })));

  function fillSystems() {
    const system = systemBox.value, sentence = sentenceBox.selectedIndex;
    options(systemBox, Object.keys(text().systems));
    options(sentenceBox, text().sources.map((words, i) => `${text().lines[i]}: ${words.slice(0, 7).join(" ")} …`));
    if (system in text().systems) systemBox.value = system;
    sentenceBox.selectedIndex = Math.min(Math.max(sentence, 0), text().sources.length - 1);
  }

  function word(side, name, index, unknown) {
    const inner = unknown ? make("mark", { textContent: name, title: "stands for an unknown word" }) : name;
    const button = make("button", { type: "button", tabIndex: index ? -1 : 0 }, make("span", {}, inner), make("small"));
    button.dataset.side = side;
    button.dataset.index = index;
    return button;
  }

  function fill() {
    const i = sentenceBox.selectedIndex, found = text().systems[systemBox.value][i], source = [...text().sources[i]];
    const target = [...(text().references ? text().references[i] : found.words), END];
    const columns = found.weights.length / target.length;
    if (columns > source.length) source.push(END);
    const weights = target.map((_, t) =>
      source.map((_, s) => DIGITS.indexOf(found.weights[t * columns + s]) / (DIGITS.length - 1)));
    shown = { source, target, weights, gold: text().gold ? text().gold[i] : [] };
    rows.source.replaceChildren(...source.map((name, s) => word("source", name, s, false)));
    rows.target.replaceChildren(...target.map((name, t) =>
      word("target", name, t, (found.unknown || []).includes(t) || name === "<unk>")));
    chosen = null;
    before.disabled = i === 0;
    after.disabled = i === sentenceBox.length - 1;
    says.textContent = "Point at a word, or move to it by Tab and the arrow keys.";
  }

  function look(side, index) {
    const other = side === "target" ? "source" : "target";
    const row = shown[other].map((_, j) => side === "target" ? shown.weights[index][j] : shown.weights[j][index]);
    chosen = { side, index };
    [...rows[side].children].forEach((button, i) => {
      button.className = i === index ? "chosen" : "";
      button.tabIndex = i === index ? 0 : -1;
      button.style.removeProperty("--w");
      button.lastChild.textContent = "";
    });
    [...rows[other].children].forEach((button, j) => {
      const link = shown.gold.find(([s, t]) => side === "target" ? t === index && s === j : s === index && t === j);
      button.className = link ? (link[2] ? "sure" : "possible") : "";
      button.style.setProperty("--w", row[j]);
      button.lastChild.textContent = Math.round(100 * row[j]) || "";
    });
    const most = row.map((weight, j) => [weight, shown[other][j]]).sort((a, b) => b[0] - a[0]).slice(0, 4)
      .filter(([weight]) => weight >= 0.01).map(([weight, name]) => `${name} ${weight.toFixed(2)}`);
    const verb = side === "target" ? "attends to" : "is attended to by";
    says.textContent = `${shown[side][index]} ${verb} ${most.join(", ") || "nothing much"}.`;
  }

  function move(event) {
    const button = event.target.closest(".words button");
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: 0, ArrowDown: 0 }[event.key];
    if (!button || step === undefined) return;
    event.preventDefault();
    const row = step ? button.parentElement.children
      : rows[button.dataset.side === "source" ? "target" : "source"].children;
    row[Math.min(Math.max(Number(button.dataset.index) + step, 0), row.length - 1)].focus();
  }

  function lookAt(event) {
    const button = event.target.closest(".words button");
    if (button) look(button.dataset.side, Number(button.dataset.index));
  }

  function fromAddress() {  // #explore=TEXT:SYSTEM:LINE:WORD, the word of the target from 1
    const [name, system, line, target] = decodeURIComponent(location.hash).replace(/^#explore=/, "").split(":");
    const t = texts.findIndex((entry) => entry.text === name);
    if (!location.hash.startsWith("#explore=") || t < 0 || !(system in texts[t].systems)) return;
    textBox.selectedIndex = t;
    fillSystems();
    systemBox.value = system;
    sentenceBox.selectedIndex = Math.max(texts[t].lines.indexOf(Number(line)), 0);
    fill();
    const button = rows.target.children[Number(target || 1) - 1];
    if (button) button.focus({ preventScroll: true });
    document.getElementById("explorer").scrollIntoView({ behavior: "instant" });
  }

  function toAddress() {
    const { side, index } = chosen || { side: "target", index: 0 };
    const place = [text().text, systemBox.value, text().lines[sentenceBox.selectedIndex], side === "target" ? index + 1 : 1];
    history.replaceState(null, "", `#explore=${place.map(encodeURIComponent).join(":")}`);
  }

  options(textBox, texts.map((entry) => entry.text + (entry.forced ? " (reference, decoded by force)" : " (its own translation)")));
  textBox.addEventListener("change", () => { fillSystems(); fill(); toAddress(); });
  for (const box of [systemBox, sentenceBox]) box.addEventListener("change", () => { fill(); toAddress(); });
  for (const [button, step] of [[before, -1], [after, 1]]) {
    button.addEventListener("click", () => { sentenceBox.selectedIndex += step; fill(); toAddress(); });
  }
  for (const row of Object.values(rows)) {
    for (const kind of ["mouseover", "focusin"]) row.addEventListener(kind, lookAt);
    row.addEventListener("click", toAddress);
    row.addEventListener("keydown", move);
  }
  window.addEventListener("hashchange", fromAddress);
  form.addEventListener("submit", (event) => event.preventDefault());
  find("view").hidden = false;
  fillSystems();
  fill();
  look("target", 0);
  fromAddress();
}

// --- learning curves ------------------------------------------------------------------------------------------------

function curves(chart) {
  const says = document.getElementById("curves-says"), keys = [...document.querySelectorAll(".keys button")];
  const series = [...chart.querySelectorAll(".series")];
  const points = series.flatMap((group, i) => [...group.querySelectorAll("circle")].map((circle) =>
    ({ i, circle, x: Number(circle.getAttribute("cx")), y: Number(circle.getAttribute("cy")) })));
  const pressed = new Set();
  let at = null;

  function show(point) {
    at = point;
    series.forEach((group, i) => group.classList.toggle("on", pressed.has(i) || (point && point.i === i)));
    chart.classList.toggle("some", pressed.size > 0 || Boolean(point));
    for (const { circle } of points) circle.setAttribute("r", point && circle === point.circle ? 6 : 3);
    says.textContent = point ? point.circle.textContent : "\u00a0";
  }

  chart.addEventListener("pointermove", (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
    const open = points.filter(({ i }) => !pressed.size || pressed.has(i));
    const near = open.reduce((a, b) => Math.hypot(a.x - x, a.y - y) <= Math.hypot(b.x - x, b.y - y) ? a : b);
    show(Math.hypot(near.x - x, near.y - y) < 40 ? near : null);
  });
  chart.addEventListener("pointerleave", () => show(null));
  keys.forEach((button, i) => {
    const own = points.filter((point) => point.i === i);
    button.addEventListener("focus", () => show(own[own.length - 1]));
    button.addEventListener("pointerenter", () => show(own[own.length - 1]));
    for (const kind of ["blur", "pointerleave"]) button.addEventListener(kind, () => show(null));
    button.addEventListener("click", () => {
      if (!pressed.delete(i)) pressed.add(i);
      button.setAttribute("aria-pressed", pressed.has(i));
      show(at);
    });
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !at || at.i !== i) return;
      event.preventDefault();
      show(own[Math.min(Math.max(own.indexOf(at) + step, 0), own.length - 1)]);
    });
  });
}

const data = document.getElementById("explorer-data"), chart = document.getElementById("curves-chart");
if (data) explorer(JSON.parse(data.textContent).filter((text) => text.lines.length));
if (chart) curves(chart);
