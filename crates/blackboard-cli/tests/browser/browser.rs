//! A browser with the page in it, and what a reader sees there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::webdriver::Driver;

/// Browsers are large: one at a time.
static TURN: Mutex<()> = Mutex::new(());

pub struct Browser {
    driver: Driver,
    _turn: MutexGuard<'static, ()>,
}

/// The views of the page, by the names in its address.
pub const VIEWS: [&str; 8] =
    ["overview", "agents", "work", "entries", "locks", "timeline", "lanes", "projects"];

impl Browser {
    #[track_caller]
    pub fn start() -> Option<Browser> {
        // Other tests have their own limits: their time does not count here.
        let turn = testkit::without_limit(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        let browser = Browser { driver: Driver::start()?, _turn: turn };
        browser.driver.post("/timeouts", &json!({ "script": 100_000 }));
        browser.resize(1400, 900);
        Some(browser)
    }

    /// The pages that are opened from now on do not read again by themselves, which they do every 15 s: what shows was
    /// told by the stream.
    #[track_caller]
    pub fn only_what_is_told(&self) {
        let source = "const every = setInterval;
            window.setInterval = (f, time, ...rest) => (time >= 15000 ? 0 : every(f, time, ...rest));";
        self.command("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source }));
    }

    /// The pages that are opened from now on read again every 300 ms what they would read again every 15 s.
    #[track_caller]
    pub fn read_often(&self) {
        let source = "const every = setInterval;
            window.setInterval = (f, time, ...rest) => every(f, time >= 15000 ? 300 : time, ...rest);";
        self.command("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source }));
    }

    /// The pages that are opened from now on see a board whose event ids have gaps, as an engine may assign them: the event
    /// with the id `n` has the id `n + 997 * floor(n / 3)`. SQLite assigns no such ids, so they are put into the answers.
    #[track_caller]
    pub fn skip_revisions(&self) {
        let source = "
            const skip = (id) => id + 997 * Math.floor(id / 3);
            // The last event up to an id, which may be in a gap.
            const upTo = (id) => {
              let last = Math.floor(id / 1000) * 3;
              while (skip(last + 1) <= id) last += 1;
              return last;
            };
            const skipAll = (text) => JSON.stringify(JSON.parse(text, (name, value) =>
              ['id', 'revision', 'commit_id'].includes(name) && typeof value === 'number' ? skip(value) : value));
            const skipLine = (line) => line.startsWith('data: ') ? `data: ${skipAll(line.slice(6))}` : line;
            const inLines = () => {
              let rest = '';
              return new TransformStream({ transform(text, controller) {
                const lines = (rest + text).split('\\n');
                rest = lines.pop();
                for (const line of lines) controller.enqueue(`${skipLine(line)}\\n`);
              } });
            };
            const ask = window.fetch;
            window.fetch = async (path, options) => {
              const url = new URL(path, location);
              const isLog = url.pathname.startsWith('/api/events');
              for (const name of isLog ? ['after', 'until', 'before'] : []) {
                const id = url.searchParams.get(name);
                const found = name === 'before' ? upTo(Number(id) - 1) + 1 : upTo(Number(id));
                if (id !== null) url.searchParams.set(name, found);
              }
              const response = await ask(url, options);
              const headers = new Headers(response.headers);
              for (const name of ['Revision', 'Oldest', ...(isLog ? ['Next'] : [])]) {
                const id = headers.get(`Blackboard-${name}`);
                if (id !== null) headers.set(`Blackboard-${name}`, skip(Number(id)));
              }
              const { status } = response;
              if (!response.ok) return new Response(response.body, { status, headers });
              const body = headers.get('Content-Type').startsWith('text/event-stream')
                ? response.body.pipeThrough(new TextDecoderStream()).pipeThrough(inLines()).pipeThrough(new TextEncoderStream())
                : skipAll(await response.text());
              return new Response(body, { status, headers });
            };";
        self.command("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source }));
    }

    /// Opens an address, and waits until the page is in touch with the board.
    #[track_caller]
    pub fn open(&self, address: &str) {
        self.go(address);
        self.until_live();
    }

    /// Opens an address.
    #[track_caller]
    pub fn go(&self, address: &str) {
        self.driver.post("/url", &json!({ "url": address }));
    }

    /// Waits until the page is in touch with the board.
    #[track_caller]
    pub fn until_live(&self) {
        self.until(
            "the page is live",
            "return document.getElementById('connection')?.dataset.state === 'live'",
        );
    }

    /// Opens an address in another tab, closes that tab when its page is live, and returns to this one.
    #[track_caller]
    pub fn open_beside(&self, address: &str) {
        let here = self.driver.get("/window");
        let there = self.driver.post("/window/new", &json!({ "type": "tab" }))["handle"].clone();
        self.driver.post("/window", &json!({ "handle": there }));
        self.open(address);
        self.driver.delete("/window");
        self.driver.post("/window", &json!({ "handle": here }));
    }

    /// Gets the cookie of a server that was started again, as another tab would. The page stays.
    #[track_caller]
    pub fn renew(&self, address: &str) {
        let status = self.script_with_callback(&format!(
            "const done = arguments[0];
             fetch({}, {{ cache: 'no-store' }}).then(response => done(response.status), error => done(String(error)))",
            json!(address)
        ));
        assert_eq!(status, 200);
    }

    /// Shows a view.
    #[track_caller]
    pub fn view(&self, name: &str) {
        self.script(&format!("document.getElementById('tab-{name}').click()"));
        self.until("the view is shown", &format!("return !document.getElementById('view-{name}').hidden"));
    }

    /// Runs a script in the page, and returns what it returns.
    #[track_caller]
    pub fn script(&self, script: &str) -> Value {
        self.driver.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script that calls its last argument when it is done.
    #[track_caller]
    pub fn script_with_callback(&self, script: &str) -> Value {
        self.driver.post("/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns something, and returns that.
    #[track_caller]
    pub fn until(&self, what: &str, script: &str) -> Value {
        let start = Instant::now();
        loop {
            let value = self.script(script);
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            if start.elapsed() > testkit::patience() * 2 {
                let text = self.script("return document.body.innerText.slice(0, 4000)");
                let said = text.as_str().unwrap_or_default();
                panic!(
                    "not so: {what}\n{script}\n--- the page:\n{said}\n--- its console: {:?}",
                    self.console()
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until an element of the page contains this text.
    #[track_caller]
    pub fn until_says(&self, selector: &str, text: &str) {
        let script = format!(
            "return [...document.querySelectorAll({})].some(element => element.textContent.includes({}))",
            json!(selector),
            json!(text),
        );
        self.until(&format!("{selector} says {text:?}"), &script);
    }

    /// Scrolls a list of events a screen at a time until an event is there, and returns which ones it saw, in
    /// order.
    #[track_caller]
    pub fn until_all_scrolled(&self, list: &str, to: usize) -> Vec<i64> {
        let up = self
            .script(&format!("return document.querySelector('#{list} tbody tr').item.id < {to} ? -1 : 1"));
        let script = format!(
            "const scroller = document.getElementById('{list}');
             const done = arguments[0];
             const seen = [];
             const known = new Set();
             const until = performance.now() + 60000;
             const step = () => {{
               const rows = [...document.querySelectorAll('#{list} tbody tr')].map(row => row.item.id);
               for (const id of rows) if (!known.has(id)) {{ known.add(id); seen.push(id); }}
               if (known.has({to}) || performance.now() > until) return done(seen);
               scroller.scrollTop += {up} * scroller.clientHeight * 0.8;
               requestAnimationFrame(() => requestAnimationFrame(step));
             }};
             step();"
        );
        serde_json::from_value(self.script_with_callback(&script)).unwrap()
    }

    /// What a script returns as texts.
    #[track_caller]
    pub fn texts(&self, script: &str) -> Vec<String> {
        serde_json::from_value(self.script(script)).unwrap()
    }

    /// Clicks as a mouse does.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let element = self.driver.post("/element", &json!({ "using": "css selector", "value": selector }));
        let id =
            element.as_object().and_then(|object| object.values().next()).and_then(Value::as_str).unwrap();
        self.driver.post(&format!("/element/{id}/click"), &json!({}));
    }

    /// Presses keys as a keyboard does, each by its name or its character.
    #[track_caller]
    pub fn press(&self, keys: &[&str]) {
        let actions: Vec<_> = keys
            .iter()
            .flat_map(|key| {
                let value = code_of(key);
                [json!({ "type": "keyDown", "value": value }), json!({ "type": "keyUp", "value": value })]
            })
            .collect();
        self.driver.post(
            "/actions",
            &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        );
    }

    /// Makes the window this large.
    #[track_caller]
    pub fn resize(&self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Lets the system prefer `dark` or `light`.
    #[track_caller]
    pub fn prefer(&self, scheme: &str) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", &media);
    }

    #[track_caller]
    fn command(&self, command: &str, parameters: &Value) -> Value {
        self.driver.post("/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// The messages of the console since the last call.
    #[track_caller]
    pub fn console(&self) -> Vec<String> {
        let lines = self.driver.post("/se/log", &json!({ "type": "browser" }));
        lines
            .as_array()
            .unwrap()
            .iter()
            .map(|line| format!("{} {}", line["level"], line["message"]))
            .collect()
    }

    /// Fails if something is wider than the window.
    #[track_caller]
    pub fn assert_fits(&self, what: &str) {
        let too_wide = self.texts(
            "const wide = [];
             if (document.documentElement.scrollWidth > innerWidth) wide.push('the document');
             for (const element of document.querySelectorAll('main *, .bar *, dialog[open], dialog[open] *')) {
               const box = element.getBoundingClientRect();
               // Tabs may be reached by scrolling; what a box cuts off is not seen.
               if (!box.width || element.closest('.tabs, .hidden-text, svg, thead')) continue;
               if (box.right > innerWidth + 1 || box.left < -1) wide.push(`${element.localName}.${element.className}`);
             }
             return wide",
        );
        assert!(too_wide.is_empty(), "wider than the window, {what}: {too_wide:?}");
    }

    /// Writes a picture, if a directory for pictures is set.
    #[track_caller]
    pub fn picture(&self, name: &str) {
        let Some(directory) = std::env::var_os("BLACKBOARD_TEST_PICTURES") else { return };
        let picture = self.driver.get("/screenshot");
        std::fs::create_dir_all(&directory).unwrap();
        let file = std::path::Path::new(&directory).join(format!("{name}.png"));
        std::fs::write(file, from_base64(picture.as_str().unwrap())).unwrap();
    }
}

/// How WebDriver writes a key.
fn code_of(key: &str) -> String {
    let code = match key {
        "Backspace" => '\u{e003}',
        "Tab" => '\u{e004}',
        "Enter" => '\u{e007}',
        "Escape" => '\u{e00c}',
        "PageDown" => '\u{e00f}',
        "End" => '\u{e010}',
        "Home" => '\u{e011}',
        "ArrowLeft" => '\u{e012}',
        "ArrowUp" => '\u{e013}',
        "ArrowRight" => '\u{e014}',
        "ArrowDown" => '\u{e015}',
        other => return other.to_owned(),
    };
    code.to_string()
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let Some(digit) = DIGITS.iter().position(|digit| *digit == byte) else { continue };
        bits = (bits << 6) | u32::try_from(digit).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).unwrap());
        }
    }
    bytes
}
