// A member of a consumer group by kafkajs.
//
// commits=library: eachMessage, commits by the library; otherwise eachBatch, commits by hand each commit_ms.
// While it is ill: sickness=unresolved does the work of partition 0 and never resolves an offset, so that kafkajs reads
// the same records again and again; sickness=throws throws at the first message of partition 0, so that kafkajs retries,
// gives up, and starts again where it was; sickness=pause pauses partition 0 and never resumes it.
"use strict";

const { Kafka, logLevel } = require("kafkajs");
const { options, state, stopped, event, sleep } = require("./control.js");

const { topic, sickness } = options;
const commitMs = Number(options.commit_ms || 0);

function sick(partition, what) {
  return state.ill && partition === 0 && sickness === what;
}

async function main() {
  const logCreator = () => ({ namespace, log }) =>
    event("log", { text: [log.message, log.error].filter(Boolean).join(": "), of: namespace });
  const kafka = new Kafka({
    clientId: options.client_id,
    brokers: [options.bootstrap],
    logLevel: logLevel.WARN,
    logCreator,
  });
  const consumer = kafka.consumer({
    groupId: options.group,
    minBytes: Number(options.fetch_min_bytes || 1),
    maxWaitTimeInMs: Number(options.max_wait_ms),
    retry: { retries: 4 },
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    for (const partition of payload.memberAssignment[topic] || []) event("assigned", { topic, partition });
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => event("error", { error: String(payload.error) }));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const newest = new Map();
  let isPaused = false;
  if (options.commits === "library") {
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        if (sick(partition, "throws")) throw new Error(`cannot process ${message.offset}`);
      },
    });
  } else {
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: 4,
      eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
        for (const message of batch.messages) {
          if (sick(batch.partition, "unresolved")) {
            await sleep(Number(options.work_ms));
            break;
          }
          resolveOffset(message.offset);
          newest.set(batch.partition, String(BigInt(message.offset) + 1n));
        }
        await heartbeat();
      },
    });
  }
  async function commit() {
    const offsets = [...newest].map(([partition, offset]) => ({ topic, partition, offset }));
    newest.clear();
    if (offsets.length > 0) await consumer.commitOffsets(offsets).catch((error) => event("commit_error", { error: String(error) }));
  }
  const timers = [];
  if (commitMs) timers.push(setInterval(commit, commitMs));
  timers.push(
    setInterval(() => {
      const pauses = state.ill && sickness === "pause";
      if (pauses !== isPaused) {
        isPaused = pauses;
        (pauses ? consumer.pause : consumer.resume)([{ topic, partitions: [0] }]);
      }
    }, 200),
  );
  await stopped;
  timers.forEach(clearInterval);
  await commit();
  await consumer.disconnect();
  event("closed");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
