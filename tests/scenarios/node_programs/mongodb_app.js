// A small shop with MongoDB's Node driver, its messages compressed; while it is ill it leaves cursors open.
"use strict";

const { MongoClient } = require("mongodb");
const { options, state, event, sleep } = require("./control.js");

const pause = Number(options.pause_ms || 500);

async function main() {
  const client = new MongoClient(options.uri, {
    appName: options.client_id,
    compressors: options.compressors ? options.compressors.split(",") : [],
    maxPoolSize: 5,
    retryWrites: false,
  });
  await client.connect();
  const orders = client.db("shop").collection(`orders_${options.compressors.replace(",", "_")}`);
  await orders.insertMany([...Array(300).keys()].map((number) => ({ _id: number, item: `item ${number % 7}`, paid: false })));
  const open = [];
  for (let turn = 0; !state.stopped; turn++) {
    const number = turn % 300;
    await orders.updateOne({ _id: number }, { $set: { paid: turn % 2 === 0, note: `turn ${turn}` } });
    await orders.findOne({ _id: (number * 7) % 300 });
    if (turn % 5 === 0) {
      const cursor = orders.find({}, { batchSize: 50 });
      if (state.ill) {
        await cursor.next();
        open.push(cursor);
      } else {
        await cursor.toArray();
      }
    }
    if (turn % 9 === 0) {
      await Promise.all([1, 2, 3, 4].map((each) => orders.countDocuments({ item: `item ${each}` })));
    }
    if (!state.ill) await Promise.all(open.splice(0).map((cursor) => cursor.close()));
    await sleep(pause);
  }
  await Promise.all(open.map((cursor) => cursor.close()));
  await client.close();
  event("closed");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
