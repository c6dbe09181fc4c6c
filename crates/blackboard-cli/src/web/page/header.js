// Which board this is: in the bar on top, in the title of the window, and in full at the end of the overview.

const NAME_LENGTH = 60;

// A board in a project is named by the directory of the project, any other one by its database.
function boardPath(database) {
  const project = database.replace(/[\\/]\.blackboard[\\/][^\\/]+$/, "");
  return project === "" ? database : project;
}

// The last two parts of a path.
function shortPath(path) {
  const parts = path.split(/[\\/]/).filter(Boolean);
  return cut(shown(parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : path), NAME_LENGTH);
}

function createHeader() {
  new Resource({
    path: "/api/board",
    concerns: () => false,
    show({ database, version }) {
      const name = shortPath(boardPath(database));
      say(byId("board-name"), name);
      setAttribute(byId("board-name"), "title", shown(database));
      document.title = `${name} · Blackboard`;
      say(byId("database"), ` · ${shown(database)} · blackboard ${shown(version)}`);
    },
  }).neededBy(...VIEWS);
}
