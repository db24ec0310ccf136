"use strict";
// Everything is readable without this script. It adds looking at single commits, and zooming.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const [WORD, SIGN] = [0, 1];
  const ID = 40;
  const NEAR = 2; // pixels: a run that is narrower than that is met all the same

  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // the number of the run that has a cell
  const runAt = (runs, cell) => {
    let low = 0;
    let high = runs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (runs[middle][0] <= cell) low = middle; else high = middle - 1;
    }
    return low;
  };

  const commitAt = (component, cell) => {
    const at = component.places.get(cell); // all commits are known, or those of changes only
    if (at === undefined) return null;
    const id = component.ids.slice(at * ID, (at + 1) * ID);
    return {
      id,
      link: component.page.startsWith("https://") ? component.page + id : "",
      day: component.days[at],
      author: component.authors[at],
      subject: component.subjects[at],
    };
  };

  const describe = (component, row, cell) => {
    const runs = component.runs[row];
    const number = runAt(runs, cell);
    const [first, look, files] = runs[number];
    const last = number + 1 < runs.length ? runs[number + 1][0] - 1 : component.length - 1;
    const [word, sign] = [data.looks[look][WORD], data.looks[look][SIGN]];
    return { commit: commitAt(component, cell), first, last, word, sign, files: files || [], number };
  };

  const inWords = (component, cell, at) => {
    const commit = at.commit ? `${at.commit.day}, ${at.commit.id.slice(0, 10)}, ${at.commit.subject}` : "";
    return `${at.word}; commit ${cell} of ${component.length - 1}; ${commit}`;
  };

  const fillTip = (component, cell, at, touch) => {
    const since = commitAt(component, at.first);
    const state = element("p", "", `${at.sign} ${at.word}`);
    const length = at.last - at.first + 1;
    state.append(` for ${length} commit${length === 1 ? "" : "s"}`);
    if (since && at.first > 0) state.append(` since ${since.day}`);
    const lines = [state];
    if (at.files.length) lines.push(element("p", "more", `clashes in ${at.files.join(", ")}`));
    if (at.commit) {
      lines.push(element("p", "subject", at.commit.subject));
      const facts = element("p", "more", `${at.commit.id.slice(0, 10)} · ${at.commit.day} · ${at.commit.author} · ${cell} of ${component.length - 1}`);
      lines.push(facts);
      if (touch && at.commit.link) {
        const link = element("a", "", "Open the commit");
        link.href = at.commit.link;
        link.rel = "noopener noreferrer";
        lines.push(link);
      }
    }
    tip.replaceChildren(...lines);
    tip.hidden = false;
  };

  const placeTip = (x, box) => {
    const width = tip.offsetWidth;
    const height = tip.offsetHeight;
    tip.style.left = `${Math.max(8, Math.min(x - width / 2, innerWidth - width - 8))}px`;
    const below = box.bottom + 10;
    tip.style.top = `${below + height > innerHeight ? box.top - height - 10 : below}px`;
  };

  const start = (figure, component) => {
    component.places = new Map(component.cells.map((cell, number) => [cell, number]));
    const tracks = [...figure.querySelectorAll(".track")];
    const scroll = figure.querySelector(".scroll");
    const rows = figure.querySelector(".rows");
    const here = element("a", "here");
    here.tabIndex = -1;
    here.rel = "noopener noreferrer";
    here.setAttribute("aria-hidden", "true");
    const cursor = element("div", "cursor");
    let cell = component.length - 1;
    let current = null;
    let touching = false;
    let zoom = 1;

    const hide = () => {
      tip.hidden = true;
      cursor.remove();
    };

    const show = (track, wanted) => {
      current = track;
      cell = Math.max(0, Math.min(component.length - 1, wanted));
      const at = describe(component, Number(track.dataset.row), cell);
      const middle = (cell + 0.5) / component.length;
      cursor.style.left = `${middle * 100}%`;
      track.append(here, cursor);
      if (at.commit && at.commit.link) here.href = at.commit.link; else here.removeAttribute("href");
      track.setAttribute("aria-valuenow", cell);
      track.setAttribute("aria-valuetext", inWords(component, cell, at));
      fillTip(component, cell, at, touching);
      const box = track.getBoundingClientRect();
      placeTip(box.left + middle * box.width, box);
      return at;
    };

    // the commit below a pixel; of several the one that begins the worst run
    const cellAt = (track, x) => {
      const box = track.getBoundingClientRect();
      const at = (pixel) => Math.max(0, Math.min(component.length - 1, Math.floor(((pixel - box.left) / box.width) * component.length)));
      const middle = at(x);
      const runs = component.runs[Number(track.dataset.row)];
      let best = runAt(runs, middle);
      let found = middle;
      for (let number = runAt(runs, at(x - NEAR)); number < runs.length && runs[number][0] <= at(x + NEAR); number += 1) {
        if (box.width / component.length < NEAR && runs[number][1] > runs[best][1]) {
          best = number;
          found = runs[number][0];
        }
      }
      return found;
    };

    const focus = (track) => {
      for (const each of tracks) each.tabIndex = each === track ? 0 : -1;
      if (document.activeElement !== track) track.focus({ preventScroll: true });
      track.scrollIntoView({ block: "nearest", inline: "nearest" });
    };

    const keepInSight = () => {
      const box = current.getBoundingClientRect();
      const x = box.left + ((cell + 0.5) / component.length) * box.width;
      const frame = scroll.getBoundingClientRect();
      const label = figure.querySelector(".label").offsetWidth % frame.width;
      if (x < frame.left + label + 20) scroll.scrollLeft -= frame.left + label + 60 - x;
      else if (x > frame.right - 20) scroll.scrollLeft += x - frame.right + 60;
    };

    const setZoom = (wanted, x) => {
      const box = tracks[0].getBoundingClientRect();
      const widest = Math.max(1, (component.length * 14) / (box.width / zoom));
      const next = Math.max(1, Math.min(widest, wanted));
      const frame = scroll.getBoundingClientRect();
      const held = x === undefined ? frame.left + frame.width / 2 : x;
      const share = (held - box.left) / box.width;
      zoom = next;
      rows.style.width = `${zoom * 100}%`;
      figure.classList.toggle("zoomed", zoom > 2);
      const now = tracks[0].getBoundingClientRect();
      scroll.scrollLeft += now.left + share * now.width - held;
      figure.querySelector(".out").disabled = zoom <= 1;
      figure.querySelector(".in").disabled = zoom >= widest;
    };

    const beside = (track, step) => {
      const shown = tracks.filter((each) => each.offsetParent !== null);
      return shown[shown.indexOf(track) + step] || track;
    };

    const walk = (track, key, far) => {
      const runs = component.runs[Number(track.dataset.row)];
      const number = runAt(runs, cell);
      const page = Math.max(1, Math.round(component.length / 20));
      const left = far ? (runs[number][0] < cell ? runs[number][0] : (runs[number - 1] || [0])[0]) : cell - 1;
      const right = far ? (runs[number + 1] || [component.length - 1])[0] : cell + 1;
      return { ArrowLeft: left, ArrowRight: right, Home: 0, End: component.length - 1, PageUp: cell - page, PageDown: cell + page }[key];
    };

    const onKey = (track, event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const to = walk(track, event.key, event.shiftKey);
      touching = false;
      if (to !== undefined) show(track, to);
      else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        const other = beside(track, event.key === "ArrowUp" ? -1 : 1);
        focus(other);
        show(other, cell);
      } else if (event.key === "Enter") here.click();
      else if (event.key === "+" || event.key === "-") setZoom(event.key === "+" ? zoom * 1.6 : zoom / 1.6);
      else if (event.key === "Escape") hide();
      else return;
      event.preventDefault();
      if (!tip.hidden) {
        keepInSight();
        show(current, cell);
      }
    };

    tracks.forEach((track, number) => {
      const picture = track.querySelector("svg");
      track.setAttribute("role", "slider");
      track.setAttribute("aria-label", picture.getAttribute("aria-label"));
      track.setAttribute("aria-valuemin", 0);
      track.setAttribute("aria-valuemax", component.length - 1);
      track.setAttribute("aria-valuenow", cell);
      track.setAttribute("aria-valuetext", inWords(component, cell, describe(component, number, cell)));
      picture.setAttribute("aria-hidden", "true");
      track.tabIndex = number ? -1 : 0;
      track.addEventListener("pointerdown", (event) => { touching = event.pointerType === "touch"; });
      track.addEventListener("pointermove", (event) => {
        if (event.pointerType !== "touch") {
          touching = false;
          show(track, cellAt(track, event.clientX));
        }
      });
      track.addEventListener("click", (event) => {
        if (!touching) return;
        event.preventDefault();
        show(track, cellAt(track, event.clientX));
      });
      track.addEventListener("pointerleave", () => { if (!touching) hide(); });
      track.addEventListener("focus", () => { if (track.matches(":focus-visible")) show(track, cell); });
      track.addEventListener("blur", () => { if (!touching) hide(); });
      track.addEventListener("keydown", (event) => onKey(track, event));
    });

    scroll.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      setZoom(event.deltaY < 0 ? zoom * 1.25 : zoom / 1.25, event.clientX);
    }, { passive: false });
    figure.querySelector(".in").addEventListener("click", () => setZoom(zoom * 1.6));
    figure.querySelector(".out").addEventListener("click", () => setZoom(zoom / 1.6));
    setZoom(1);
    figure.querySelector(".tools").hidden = false;
    figure.querySelector(".hint").hidden = false;
    const only = figure.querySelector(".only");
    if (only) only.addEventListener("change", () => figure.classList.toggle("only", only.checked));
  };

  for (const figure of document.querySelectorAll(".timeline")) {
    start(figure, data.components[figure.dataset.component]);
  }
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details.patch")) each.open = true;
  });
})();
