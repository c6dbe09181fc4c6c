// Rows that exist only while they are visible: a list of any length costs as much as the screen shows.
//
// The rows of a list are equally high (`--row-height` says how high). `create` makes the element of a row,
// `update` fills it with an item; elements are used again for other items as the list scrolls.

const SPARE_ROWS = 6;

class Rows {
  constructor(body, { create, update, scroller, key }) {
    this.body = body;
    this.scroller = scroller || body.closest(".rows");
    this.create = create;
    this.update = update;
    this.key = key;
    this.items = [];
    this.used = new Map();
    this.free = [];
    this.height = 0;
    this.scheduled = false;
    this.current = null;
    this.scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.onKey(event));
    this.body.addEventListener("focusin", (event) => this.onFocus(event));
    new ResizeObserver(() => this.resize()).observe(this.scroller);
  }

  show(items) {
    this.items = items;
    this.resize();
    const panel = this.scroller.closest(".panel");
    const empty = panel && panel.querySelector(".empty");
    if (empty) {
      empty.hidden = items.length > 0;
      this.scroller.hidden = items.length === 0;
    }
    const table = this.body.closest("table");
    if (table) setAttribute(table, "aria-rowcount", items.length + 1);
  }

  resize() {
    const height = parseFloat(getComputedStyle(this.body).getPropertyValue("--row-height")) || 36;
    if (height !== this.height) {
      this.height = height;
      for (const element of this.used.values()) element.row = -1;
    }
    this.body.style.height = `${this.items.length * this.height}px`;
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.render();
    });
  }

  // What is above the body inside of the scroller: the head of the table.
  above() {
    return this.body.offsetTop;
  }

  firstVisible() {
    return Math.max(0, Math.floor(this.scroller.scrollTop / this.height));
  }

  render() {
    if (!this.scroller.clientHeight && this.items.length) return;
    const first = Math.max(0, this.firstVisible() - SPARE_ROWS);
    const visible = Math.ceil(this.scroller.clientHeight / this.height);
    const last = Math.min(this.items.length, first + visible + 2 * SPARE_ROWS);
    const before = this.used;
    const after = new Map();
    for (let index = first; index < last; index += 1) {
      const key = this.key(this.items[index], index);
      const element = before.get(key);
      if (element && !after.has(key)) {
        before.delete(key);
        after.set(key, element);
      }
    }
    const unused = [...before.values()];
    const order = [];
    for (let index = first; index < last; index += 1) {
      const item = this.items[index];
      const key = this.key(item, index);
      let element = after.get(key);
      if (!element) {
        element = unused.pop() || this.free.pop() || this.create();
        after.set(key, element);
      }
      if (element.row !== index) {
        element.row = index;
        element.style.transform = `translateY(${index * this.height}px)`;
        if (element.localName === "tr") setAttribute(element, "aria-rowindex", index + 2);
      }
      element.item = item;
      this.update(element, item, index);
      order.push(element);
    }
    for (const element of unused) {
      element.remove();
      element.item = null;
      this.free.push(element);
    }
    this.used = after;
    this.arrange(order);
  }

  // Rows stand in the document as they are read. Of their buttons one is a stop of the Tab key, the arrows do
  // the rest.
  arrange(order) {
    const focused = document.activeElement;
    let place = this.body.firstChild;
    for (const element of order) {
      if (element === place) place = place.nextSibling;
      else this.body.insertBefore(element, place);
    }
    if (focused !== document.activeElement && this.body.contains(focused))
      focused.focus({ preventScroll: true });
    const current = this.used.has(this.current)
      ? this.used.get(this.current)
      : order.find((row) => row.row >= this.firstVisible());
    for (const element of order) {
      const button = element.querySelector("button");
      if (button) button.tabIndex = element === current && button.hidden === false ? 0 : -1;
    }
  }

  onFocus(event) {
    const row = [...this.used.values()].find((element) => element.contains(event.target));
    if (row) this.current = this.key(row.item, row.row);
    this.schedule();
  }

  onKey(event) {
    const row = [...this.used.values()].find((element) => element.contains(event.target));
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.focusRow(Math.min(Math.max(row.row + steps[event.key], 0), this.items.length - 1));
  }

  focusRow(index) {
    this.reveal(index);
    const row = this.used.get(this.key(this.items[index], index));
    const button = row && row.querySelector("button:not([hidden]), [role=button]");
    if (button) button.focus({ preventScroll: true });
  }

  // Scrolls as little as needed, so that a row can be seen.
  reveal(index) {
    const top = index * this.height;
    const room = this.scroller.clientHeight - this.above() - this.height;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.render();
  }
}

// A table of rows, each opened by a click or by Enter. `columns` has a function for each column that fills
// its cell.
function tableRows(table, columns, { key, open, scroller }) {
  const labels = [...table.querySelectorAll("th")].map((head) => head.textContent);
  return new Rows(table.tBodies[0], {
    scroller,
    key,
    create() {
      const cells = labels.map((label) => make("td", { role: "cell", "data-label": label }));
      const row = make("tr", { role: "row" }, ...cells);
      cells.forEach((cell, index) => columns[index].create && columns[index].create(cell));
      if (open) {
        row.classList.add("opens");
        row.addEventListener("click", () => !getSelection().toString() && open(row.item));
      }
      return row;
    },
    update(row, item) {
      columns.forEach((column, index) => column.update(row.cells[index], item));
    },
  });
}

// Columns of the kinds that tables have.
const textColumn = (read) => ({ update: (cell, item) => sayRow(cell, read(item)) });

const codeColumn = (read) => ({
  create: (cell) => cell.classList.add("code"),
  update: (cell, item) => sayRow(cell, read(item)),
});

const numberColumn = (read) => ({
  create: (cell) => cell.classList.add("number"),
  update: (cell, item) => say(cell, read(item) ?? "--"),
});

const timeColumn = (read) => ({
  create: (cell) => cell.append(make("time")),
  update: (cell, item) => setTime(cell.firstChild, read(item)),
});

const statusColumn = (read, overdue) => ({
  create: (cell) => cell.append(make("span")),
  update: (cell, item) => setStatus(cell.firstChild, read(item), overdue && overdue(item)),
});

// The first column of a row that opens something: a button, so that the keyboard gets there too.
const openColumn = (read, open, decorate) => ({
  create(cell) {
    cell.append(
      make("button.link", {
        type: "button",
        onclick: (event) => {
          event.stopPropagation();
          open(event.currentTarget.closest("tr").item);
        },
      }),
    );
  },
  update(cell, item) {
    sayRow(cell.firstChild, read(item));
    if (decorate) decorate(cell, item);
  },
});
