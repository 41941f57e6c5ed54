import { agentOf } from './http-post.ts';
import {
  type CompleteResponse,
  type NoResponse,
  type NotSent,
  type RoundTrip,
  repeated,
  retryDelayMs,
  type Server,
  sendOnce,
  type TestRequest,
} from './round-trip.ts';

/** Network errors of a request on a connection that its server has closed. */
const CLOSED_CODES = ['ECONNRESET', 'EPIPE'];

type SecondRoundTrip = RoundTrip<CompleteResponse | NoResponse | NotSent>;

interface PlantRequest {
  request: TestRequest;
  plantId: bigint;
}

/** Sends two requests on one connection. @returns the second one, or what the first one lacked */
export function sendOnOneConnection(
  server: Server,
  first: PlantRequest,
  second: PlantRequest,
): Promise<SecondRoundTrip> {
  return repeated<SecondRoundTrip>(server, async () => {
    const agent = agentOf(server.plantsUrl, true);
    try {
      const earlier = await sendOnce(server, first.request, first.plantId, agent);
      const { received } = earlier;
      if (received.kind === 'noResponse' || retryDelayMs(received) !== undefined) return earlier;
      if (received.endsConnection) {
        const reason = 'the server says that it closes each connection after one response';
        return { sent: earlier.sent, received: { kind: 'notSent', reason } };
      }
      return withCause(await sendOnce(server, second.request, second.plantId, agent));
    } finally {
      agent.destroy();
    }
  });
}

/** Names the cause if the server had closed the connection. Then the agent opens a new one, or fails. */
function withCause({ sent, received }: RoundTrip): RoundTrip {
  const isOpen =
    received.kind === 'response' ? received.isOnUsedConnection : !CLOSED_CODES.includes(received.code);
  if (isOpen) return { sent, received };
  const message = 'the server closed the connection without Connection: close';
  return { sent, received: { kind: 'noResponse', message, code: 'ECONNRESET' } };
}
