import type { Result } from './result.ts'

interface Impossible {
  readonly suite: RegExp
  readonly test: RegExp
  readonly reason: string
}

/** Requests and tests whose subject is Python's or Java's own internals, or a file that no longer exists. */
const IMPOSSIBLE: readonly Impossible[] = [
  {
    suite: /^test_continuous_batching$/,
    test: /^test_decoding_stage$/,
    reason: "calls the methods of a Python handler with PyTorch's tensors; TorchServe skips it itself",
  },
  {
    suite: /^test_continuous_batching$/,
    test: /^test_closed_connection$/,
    reason:
      'waits for lines of the Java server and of the Python worker on stdout; TorchServe skips it itself',
  },
  {
    suite: /^test_snapshot$/,
    test: /^test_replace_mar_file_with_dummy$/,
    reason:
      "asks that a file of junk is served as a model: Java's zip reader takes it for an empty archive; here a broken archive is refused",
  },
]

/** With Python models. */
const IMPOSSIBLE_PYTHON: readonly Impossible[] = [
  {
    suite: /^test_continuous_batching$/,
    test: /^test_echo_stream_inference$/,
    reason:
      'its handler is GPT-2: it needs transformers and weights from the Hugging Face hub; TorchServe skips it itself',
  },
]

/** A failure that cannot be helped is impossible; what passes all the same has passed. */
export function judge(result: Result, python: boolean): Result {
  if (result.outcome !== 'failed') return result
  const list = python ? [...IMPOSSIBLE, ...IMPOSSIBLE_PYTHON] : IMPOSSIBLE
  const known = list.find(({ suite, test }) => suite.test(result.suite) && test.test(result.test))
  return known === undefined ? result : { ...result, outcome: 'impossible', reason: known.reason }
}
