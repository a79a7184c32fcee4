// Signs and verifies with the senders' own libraries: one JSON object a line comes in, one goes out.
//
// Started from the folder that the packages were installed into, with `--eval`, so that they are found there.
import { createInterface } from "node:readline";

const [standard, stripe, octokit] = await Promise.all(
  ["standardwebhooks", "stripe", "@octokit/webhooks-methods"].map((name) => import(name)),
);
const { Webhook } = standard.default;
const webhooks = stripe.default.webhooks ?? new stripe.default("sk_test_none").webhooks;

// `body` is a Buffer; octokit takes text only. Every library asks `Date.now` for the time.
const PEERS = {
  standardwebhooks: {
    sign: ({ secret, id, now, body }) => ({
      "webhook-id": id,
      "webhook-timestamp": String(now),
      "webhook-signature": new Webhook(secret).sign(id, new Date(now * 1000), body),
    }),
    verify: ({ secret, headers, body }) => {
      new Webhook(secret).verify(body, headers, { jsonParse: false });
      return true;
    },
  },
  stripe: {
    sign: ({ secret, now, body }) => ({
      "stripe-signature": webhooks.generateTestHeaderString({
        payload: body.toString(),
        secret,
        timestamp: now,
      }),
    }),
    verify: ({ secret, headers, body }) =>
      webhooks.signature.verifyHeader(body, headers["stripe-signature"], secret, webhooks.DEFAULT_TOLERANCE),
  },
  "@octokit/webhooks-methods": {
    sign: async ({ secret, body }) => ({
      "x-hub-signature-256": await octokit.sign(secret, body.toString()),
    }),
    verify: ({ secret, headers, body }) =>
      octokit.verify(secret, body.toString(), headers["x-hub-signature-256"]),
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  asked.body = Buffer.from(asked.body, "base64");
  Date.now = () => asked.now * 1000;
  const peer = PEERS[asked.package];
  let answer;
  try {
    answer =
      asked.op === "sign"
        ? { headers: await peer.sign(asked) }
        : { accepted: await peer.verify(asked) };
  } catch (error) {
    answer =
      asked.op === "sign"
        ? { failed: String(error) }
        : { accepted: false, crashed: !error.constructor.name.endsWith("VerificationError") };
  }
  console.log(JSON.stringify(answer));
}
