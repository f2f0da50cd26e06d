"use strict";
(function () {
  /* tables: a click (or Enter, or Space) on a heading sorts; again turns the order; cells without a value stay last */
  function key(row, column) {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    if (value === undefined) return (cell.dataset.text || cell.textContent).trim().toLowerCase();
    return value === "" ? null : Number(value);
  }
  function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  }
  function sort(heading) {
    const table = heading.closest("table");
    const body = table.tBodies[0];
    const column = heading.cellIndex;
    const before = heading.getAttribute("aria-sort");
    const first = heading.dataset.first || "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const now = before === first ? other : first;
    const sign = now === "ascending" ? 1 : -1;
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", now);
    const rows = Array.from(body.rows).map((row) => [key(row, column), row]);
    rows.sort((a, b) => (a[0] === null) - (b[0] === null) || (a[0] === null ? 0 : sign * compare(a[0], b[0])));
    for (const [, row] of rows) body.append(row);
  }
  for (const button of document.querySelectorAll("table.sortable thead button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }

  /* the target picker: choose a task and network, then a target, and see its numbers */
  const box = document.getElementById("picker");
  if (box) {
    const data = JSON.parse(document.getElementById("data").textContent);
    const [group, target] = [document.getElementById("pick-group"), document.getElementById("pick-target")];
    const body = document.getElementById("picked");
    const option = (text, value) => {
      const made = document.createElement("option");
      made.textContent = text;
      made.value = value;
      return made;
    };
    const number = (value, digits) => {
      if (digits === null) return String(Number(value.toPrecision(2)));
      return digits === 1 && Number.isInteger(value) ? String(value) : value.toFixed(digits);
    };
    const cell = (value, column) => {
      const made = document.createElement("td");
      made.className = "figure";
      if (typeof value === "number") {
        made.dataset.value = value;
        made.textContent = number(value, data.metrics[column].digits);
      } else {
        made.dataset.value = "";
        const why = value === null ? { name: "–", told: "not measured" } : data.statuses[Number(value)];
        made.textContent = why.name.replaceAll("_", " ");
        made.title = why.told;
        made.classList.add("gap");
      }
      return made;
    };
    const show = () => {
      const values = data.groups[group.value].values[target.value];
      body.replaceChildren();
      data.explainers.forEach((name, k) => {
        if (!values[k].some((value) => value !== null)) return;
        const row = document.createElement("tr");
        const head = document.createElement("th");
        head.scope = "row";
        head.textContent = name;
        row.append(head, ...values[k].map(cell));
        body.append(row);
      });
      for (const each of box.querySelectorAll("[aria-sort]")) each.removeAttribute("aria-sort");
    };
    const fill = () => {
      target.replaceChildren(...data.groups[group.value].targets.map((text, k) => option(text, k)));
      show();
    };
    const step = (by) => {
      const size = target.options.length;
      target.value = String((Number(target.value) + by + size) % size);
      show();
    };
    group.replaceChildren(...data.groups.map((own, k) => option([own.task, own.model].filter(Boolean).join(" · ") || "this run", k)));
    group.parentElement.hidden = data.groups.length < 2;
    group.addEventListener("change", fill);
    target.addEventListener("change", show);
    document.getElementById("pick-before").addEventListener("click", () => step(-1));
    document.getElementById("pick-after").addEventListener("click", () => step(1));
    fill();
    box.hidden = false;
    document.getElementById("no-picker").hidden = true;
  }

  /* paper has no clicks: everything is open while printing */
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const each of opened) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
})();
