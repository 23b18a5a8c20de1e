// Connects a client program with its scenario: options as name=value, words on standard input ("ill", "well", "stop"),
// events as lines of JSON on standard output.
"use strict";

const readline = require("node:readline");

const options = Object.fromEntries(
  process.argv.slice(2).map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]),
);
const state = { ill: false, stopped: false };
const lines = readline.createInterface({ input: process.stdin });
let end;
const stopped = new Promise((resolve) => {
  end = () => {
    state.stopped = true;
    resolve();
  };
});
lines.on("line", (line) => {
  if (line === "stop") end();
  else state.ill = line === "ill";
});
lines.on("close", end);

function event(kind, fields = {}) {
  console.log(JSON.stringify({ ts_ms: Date.now(), client_id: options.client_id, kind, ...fields }));
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

module.exports = { options, state, stopped, event, sleep };
