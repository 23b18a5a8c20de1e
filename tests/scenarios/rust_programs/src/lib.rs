//! Connects a client program with its scenario: options as name=value, words on standard input ("ill", "well",
//! "stop"), events as lines of JSON on standard output.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use log::{LevelFilter, Log, Metadata, Record};

use serde_json::{Value, json};

/// What the scenario asked for, whether the client is ill, and whether it is to stop.
#[derive(Clone)]
pub struct Control {
    options: Arc<HashMap<String, String>>,
    ill: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
}

impl Control {
    /// Reads the options, and from now on standard input.
    pub fn new() -> Self {
        let options = std::env::args()
            .skip(1)
            .filter_map(|each| {
                each.split_once('=')
                    .map(|(name, value)| (name.into(), value.into()))
            })
            .collect();
        let control = Control {
            options: Arc::new(options),
            ill: Arc::default(),
            stopped: Arc::default(),
        };
        let reader = control.clone();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                match line.as_str() {
                    "stop" => break,
                    word => reader.ill.store(word == "ill", Ordering::Relaxed),
                }
            }
            reader.stopped.store(true, Ordering::Relaxed);
        });
        control
    }

    /// Reports what the library logs as a warning or worse.
    pub fn report_log(&self) {
        if log::set_logger(Box::leak(Box::new(self.clone()))).is_ok() {
            log::set_max_level(LevelFilter::Warn);
        }
    }

    /// The value of an option, empty if it is not given.
    pub fn option(&self, name: &str) -> &str {
        self.options.get(name).map_or("", String::as_str)
    }

    /// An option in milliseconds; None if it is not given or 0.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        self.option(name)
            .parse()
            .ok()
            .filter(|ms| *ms > 0)
            .map(Duration::from_millis)
    }

    pub fn ill(&self) -> bool {
        self.ill.load(Ordering::Relaxed)
    }

    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Reports one event.
    pub fn event(&self, kind: &str, fields: Value) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a clock after 1970");
        let mut event = json!({"ts_ms": now.as_millis() as u64, "client_id": self.option("client_id"), "kind": kind});
        if let (Some(all), Some(more)) = (event.as_object_mut(), fields.as_object()) {
            all.extend(more.clone());
        }
        println!("{event}");
    }
}

impl Log for Control {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let text = format!("{} {}", record.level(), record.args());
        self.event("log", json!({"text": text}));
    }

    fn flush(&self) {}
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
