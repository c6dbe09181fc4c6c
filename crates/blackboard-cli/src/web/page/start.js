// Puts the page together, and starts to follow the board.

const AGED_AFTER = 15 * SECOND;

createHeader();
createCards();
createOverview();
createTree();
createBoard();
createEntries();
createLocks();
createTimeline();
createLanes();
createProjects();
createQuota();
createDrawer();
createViews();
createKeys();
showView(viewOfAddress());
keepConnected();
setInterval(() => {
  refreshTimes();
  refreshConnection();
}, SECOND);
setInterval(readAged, AGED_AFTER);
