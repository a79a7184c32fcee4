"""Signs and verifies with the senders' own libraries: one JSON object a line comes in, one goes out."""

import base64
import json
import sys
from datetime import datetime, timezone

import slack_sdk.signature
import standardwebhooks.webhooks

NOW = 0


class Frozen(datetime):
    """The `datetime` that the libraries ask for the time."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, tz)


# svix verifies with standardwebhooks.
standardwebhooks.webhooks.datetime = Frozen


class SlackClock(slack_sdk.signature.Clock):
    def now(self):
        return float(NOW)


class Standard:
    prefix = "webhook-"

    def sign(self, asked, body):
        at = datetime.fromtimestamp(NOW, timezone.utc)
        signature = self.webhook(asked).sign(asked["id"], at, body.decode())
        return {
            self.prefix + "id": asked["id"],
            self.prefix + "timestamp": str(NOW),
            self.prefix + "signature": signature,
        }

    def verify(self, asked, body):
        self.webhook(asked).verify(body, asked["headers"], json_parse=False)
        return True

    def webhook(self, asked):
        return standardwebhooks.webhooks.Webhook(asked["secret"])


class Svix(Standard):
    prefix = "svix-"

    def verify(self, asked, body):
        self.webhook(asked).verify(body, asked["headers"])
        return True

    def webhook(self, asked):
        # Here, since it brings a whole API client along, and takes a second for it.
        import svix.webhooks

        return svix.webhooks.Webhook(asked["secret"])


class Slack:
    def sign(self, asked, body):
        signature = self.verifier(asked).generate_signature(timestamp=str(NOW), body=body)
        return {"x-slack-request-timestamp": str(NOW), "x-slack-signature": signature}

    def verify(self, asked, body):
        return self.verifier(asked).is_valid_request(body, asked["headers"])

    def verifier(self, asked):
        return slack_sdk.signature.SignatureVerifier(asked["secret"], SlackClock())


PEERS = {
    "standardwebhooks": Standard(),
    "svix": Svix(),
    "slack_sdk": Slack(),
}

for line in sys.stdin:
    asked = json.loads(line)
    body = base64.b64decode(asked["body"])
    NOW = asked["now"]
    peer = PEERS[asked["package"]]
    try:
        if asked["op"] == "sign":
            answer = {"headers": peer.sign(asked, body)}
        else:
            answer = {"accepted": peer.verify(asked, body)}
    except Exception as error:
        if asked["op"] == "sign":
            answer = {"failed": repr(error)}
        else:
            refused = isinstance(error, standardwebhooks.webhooks.WebhookVerificationError)
            answer = {"accepted": False, "crashed": not refused}
    print(json.dumps(answer), flush=True)
