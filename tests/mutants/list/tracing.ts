import type { Mutant } from '../mutant.ts'

const OTEL = 'frontend/observe/traces/otel-tracing.ts'
const JOB = 'frontend/observe/traces/otel-job-span.ts'
const REQUEST = 'frontend/edge/http/request-trace.ts'
const E2E = ['tests/e2e/tracing.test.ts']

/** Spans, their parents, and what they say. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a traceparent that is no context stops the spans of jobs',
    file: OTEL,
    find: "(env['OTEL_PROPAGATORS'] ?? 'tracecontext').includes('tracecontext')",
    replace: 'true',
    title: 'contexts in other headers',
    tests: E2E,
  },
  {
    name: 'spans do not hang below those of clients',
    file: OTEL,
    find: 'propagation.extract(ROOT_CONTEXT, headers, CARRIER)',
    replace: 'ROOT_CONTEXT',
    title: 'in one tree: TorchServe /predictions, paced',
    tests: E2E,
  },
  {
    name: 'the handler gets the context of the request instead of its own',
    file: OTEL,
    find: '    propagation.inject(own, request, LINES)\n',
    replace: '',
    title: 'context of its model span',
    tests: E2E,
  },
  {
    name: 'a header of the client stands beside the one of the server',
    file: REQUEST,
    find: 'list.splice(at, 2)',
    replace: 'break',
    title: 'context of its model span',
    tests: E2E,
  },
  {
    name: 'texts of clients are not cut in spans',
    file: OTEL,
    find: "typeof value === 'string' ? value.slice(0, MAX_TEXT) : value",
    replace: 'value',
    title: 'long texts are cut',
    tests: E2E,
  },
  {
    name: 'texts of lists are not cut in spans',
    file: OTEL,
    find: 'value.slice(0, MAX_ENTRIES).map(cut)',
    replace: 'value',
    title: 'texts of a list are cut',
    tests: E2E,
  },
  {
    name: 'metrics go to a collector on this host where only spans are exported',
    file: 'frontend/observe/traces/metric-readers.ts',
    find: 'names.length === 0 && hasEndpoint',
    replace: 'names.length === 0',
    title: 'a stop waits for',
    tests: E2E,
  },
  {
    name: 'the access log of gRPC has no trace of a call',
    file: 'frontend/edge/grpc/listener.ts',
    find: '() => this.calls.traceId',
    replace: '() => undefined',
    title: 'whatever header carries contexts',
    tests: E2E,
  },
  {
    name: 'a cancelled stream is an error of its span',
    file: JOB,
    find: "if (job.outcome === 'failed' || job.outcome === 'timed_out')",
    replace: "if (job.outcome !== 'finished')",
    title: 'whose client leaves',
    tests: E2E,
  },
  {
    name: 'probes are traced',
    file: REQUEST,
    find: "PROBES.has(target.segments.join('/'))",
    replace: 'false',
    title: 'probes are not',
    tests: E2E,
  },
  {
    name: 'a stop exports nothing',
    file: OTEL,
    find: 'const ended = this.#sdk.shutdown()',
    replace: 'const ended = Promise.resolve()',
    title: 'when the server stops',
    tests: E2E,
  },
  {
    name: 'buckets of exported histograms are cumulative',
    file: 'frontend/observe/traces/page-producer.ts',
    find: 'value - (samples[at - 1]?.value ?? 0)',
    replace: 'value',
    title: 'histograms with their buckets',
    tests: E2E,
  },
]
