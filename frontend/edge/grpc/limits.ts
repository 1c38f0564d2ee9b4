import { constants } from 'node:http2'
import type { Settings } from '../../config/settings.ts'

/** What clients of a gRPC listener may use. */
export type GrpcLimits = Pick<Settings, 'maxRequestSize' | 'maxRequestElements' | 'grpcMaxConcurrentStreams'>

/** Times of a gRPC listener, in milliseconds. */
export interface GrpcTimes {
  /** From the start of a call to its whole request; in a stream, for each message. */
  readonly messageMs: number
  /** Without calls, until a connection is closed. Clients connect again by themselves. */
  readonly idleMs: number
}

export const TIMES: GrpcTimes = { messageMs: 60_000, idleMs: 3_600_000 }

/** Largest metadata of a call: names, values and 32 for each. */
export const MAX_METADATA_BYTES = 16_384

/**
 * Megabytes that Node may hold for a connection, buffers of its frames included, before it refuses further
 * calls. grpc-js has no limit by itself.
 */
export const SESSION_MEGABYTES = 64

/**
 * What an open call counts beside its metadata and messages: the objects of Node and grpc-js for it (6.5 KB,
 * measured).
 */
export const CALL_BYTES = 7_168

/** What a message counts beside its bytes, so that many tiny ones are bounded too. */
export const MESSAGE_BYTES = 256

/**
 * What a connection may hold before one of its calls brought a token that is right; with Node's buffers less
 * than a megabyte.
 */
export const UNAUTHORIZED_BYTES = 786_432

/** Largest message of a service that asks for no token: their requests are names. */
export const PUBLIC_MESSAGE_BYTES = 4_096

/** Refused calls after which a connection is closed that never had one which was let in. */
export const MAX_REFUSED_CALLS = 100

/**
 * Refused calls of all such connections in one turn of the event loop; the connection of each further one is
 * closed. A hundred connections would take the thread for a quarter of a second otherwise.
 */
export const MAX_REFUSED_IN_TURN = 500

/**
 * Calls that ask for no token (health, reflection) of one such connection in one turn; further ones break a
 * limit.
 */
export const MAX_PUBLIC_IN_TURN = 16

/**
 * Bytes that a call on a connection with a right token explains beside its messages: metadata, and what its
 * client has under way when the server ends it, which is a window (RFC 9113, 6.9.2).
 */
export const CALL_FRAMES_BYTES = 131_072

/** What a DATA frame may have beside its payload: its head, and some padding. */
export const FRAME_BYTES = 32

/** Refused calls that one counts as whose messages broke a limit: they were read first. */
export const BREACH_CALLS = 50

/** What ends a stream or connection of a client that asks for too much (RFC 9113, 7). */
export const { NGHTTP2_ENHANCE_YOUR_CALM } = constants

/** What ends the streams of a server that stops now (RFC 9113, 7). */
export const { NGHTTP2_CANCEL } = constants

/** Milliseconds that a client has to end a call or connection by itself, once it knows that it is over. */
export const FAREWELL_MS = 1_000

/**
 * What the system may still have to send of a connection that is over: the largest buffer that Linux gives a
 * socket by default (net.ipv4.tcp_wmem). To close the socket may drop it.
 */
export const SEND_BUFFER_BYTES = 4 * 1_048_576

/** Bytes of it per second that the slowest client reads for which a closed connection waits. */
export const SLOWEST_BYTES_PER_SECOND = 131_072

/** Milliseconds that a connection has for its first call that is let in. */
export const FIRST_CALL_MS = 30_000

/** How many times its compressed size a larger message may have. */
export const MAX_RATIO = 100

/** Up to this decompressed size any ratio is taken: gzip makes a thousandth of a tensor of zeros. */
export const ANY_RATIO_BYTES = 8 * 1_048_576

/** What a header counts beside its name and value (RFC 9113, 6.5.2). */
const HEADER_BYTES = 32

/** What the metadata of a call counts; `rawHeaders` are names and values in turns. */
export function metadataBytesOf(rawHeaders: readonly string[]): number {
  let bytes = (rawHeaders.length / 2) * HEADER_BYTES
  for (const text of rawHeaders) bytes += text.length
  return bytes
}
