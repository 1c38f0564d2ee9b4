import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { PYTHON_MS } from '../support/python/client.ts'
import { describePython } from '../support/python/test-python.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** A handler with one mistake, and what its author then reads. */
interface Mistake {
  readonly what: string
  readonly source: string
  readonly config?: string
  /** Status and text of the client's answer. */
  readonly answer: readonly [status: number, text: string]
  /** What the log has besides: one line each, in any order. */
  readonly log: readonly string[]
}

const THREW =
  "cannot serve: the handler threw while it loaded. The server's log has the whole cause under the id"
/** A function whose body runs for requests only. */
const forRequests = (body: string): string =>
  `def handle(data, context):\n    if data is None: return None\n    ${body}\n`
const SERVES = forRequests("return ['x' for row in data]")

const MISTAKES: readonly Mistake[] = [
  {
    what: 'wrong_shape',
    source: forRequests("return 'hello'"),
    answer: [503, 'Invalid model predict output'],
    log: [
      "Invalid return type: <class 'str'>",
      'INVALID_OUTPUT: Invalid model predict output: handle must return a list with one item per request; "Invalid return type" in a line before says what it returned (NoneType: a return is missing)',
    ],
  },
  {
    what: 'missing_return',
    source: forRequests("['x' for row in data]"),
    answer: [503, 'Invalid model predict output'],
    log: ["Invalid return type: <class 'NoneType'>"],
  },
  {
    what: 'wrong_count',
    source: forRequests("return ['a', 'b']"),
    answer: [503, 'number of batch response mismatched'],
    log: [
      'number of batch response mismatched, expect: 1, got: 2',
      'INVALID_OUTPUT: number of batch response mismatched: handle must return a list with one item per request',
    ],
  },
  {
    what: 'throws_at_load',
    source:
      'class Model:\n    def initialize(self, context):\n        self.layers = None\n        len(self.layers)\n' +
      "    def handle(self, data, context):\n        return ['x' for row in data]\n",
    answer: [503, THREW],
    log: ["): TypeError: object of type 'NoneType' has no len() (handler.py, line 4)"],
  },
  {
    what: 'missing_package',
    source: `import no_such_package_here\n${SERVES}`,
    answer: [503, THREW],
    log: [
      "): ModuleNotFoundError: No module named 'no_such_package_here' (handler.py, line 1). Install it for the Python of the workers, which --check-archive names: python -m pip install no_such_package_here. A file of your own is packed with --extra-files",
    ],
  },
  {
    what: 'missing_weights',
    source: `weights = open('weights.bin').read()\n${SERVES}`,
    answer: [503, THREW],
    log: [
      `No such file or directory: 'weights.bin' (handler.py, line 1). Relative paths begin in the folder of the model (context.system_properties["model_dir"]); --extra-files packs a file`,
    ],
  },
  {
    what: 'syntax_error',
    source: "def handle(data, context):\n    return ['x'\n",
    answer: [503, THREW],
    log: ["): SyntaxError: '[' was never closed (handler.py, line 2)"],
  },
  {
    what: 'no_requests_at_load',
    source: "def handle(data, context):\n    return ['x' for row in data]\n",
    answer: [503, THREW],
    log: [
      `): TypeError: 'NoneType' object is not iterable (handler.py, line 2). TorchServe calls handle(None, context) once while it loads a model: begin with "if data is None: return None"`,
    ],
  },
  {
    what: 'wrong_arguments',
    source: "def handle(data):\n    return ['x']\n",
    answer: [503, THREW],
    log: [
      '): TypeError: handle() takes 1 positional argument but 2 were given. It is called as handle(data, context)',
    ],
  },
  {
    what: 'no_handle',
    source: "def predict(data, context):\n    return ['x']\n",
    answer: [503, THREW],
    log: [
      'A handler has a function handle(data, context), or exactly one class, with such a method',
      '): ValueError: Expected only one class in custom service code or a function entry point []',
    ],
  },
  {
    what: 'never_returns',
    source: `import threading\n${forRequests('threading.Event().wait()')}`,
    config: 'responseTimeout: 1',
    answer: [500, 'Timed out after 1 s: no response (firstResponseTimeout)'],
    log: [
      'timed out: the handler has not answered after',
      'Worker died: Killed: a cancelled request sent nothing for 1000 ms; the worker is restarted',
    ],
  },
  {
    what: 'infinite_loop',
    source: forRequests('while True: pass'),
    config: 'responseTimeout: 1',
    answer: [500, 'Timed out after 1 s: no response (firstResponseTimeout)'],
    log: ['Look for a loop without an end, or an await of what never comes.'],
  },
  {
    what: 'wrong_types',
    source: forRequests("return [{'tags': {1, 2}} for row in data]"),
    answer: [503, 'Unsupported model output data type.'],
    log: [
      'TypeError: Object of type set is not JSON serializable',
      'INVALID_OUTPUT: Unsupported model output data type: An item must be a str, bytes, or what json.dumps takes; the traceback before names the type',
    ],
  },
  {
    what: 'too_large',
    source: forRequests("return ['x' * 200_000 for row in data]"),
    answer: [500, 'A response of 200000 bytes is larger than max_response_size (100000)'],
    log: ['RESPONSE_TOO_LARGE: A response of 200000 bytes is larger than max_response_size (100000)'],
  },
  {
    what: 'prints',
    source: forRequests("print('a line'); return ['x' for row in data]"),
    answer: [200, 'x'],
    log: ['MODEL_LOG - a line'],
  },
  {
    what: 'throws',
    source: "def handle(data, context):\n    return [row['text'].upper() for row in data or []]\n",
    answer: [503, 'Prediction failed'],
    log: ["KeyError: 'text'", 'line 2, in handle'],
  },
]

await describePython(
  'a Python handler with a typical mistake: answer and log are enough to mend it',
  ({ python }) => {
    const store = tempDir()
    let server: Server

    beforeAll(async () => {
      for (const { what, source, config } of MISTAKES) {
        mkdirSync(join(store, what))
        writeFileSync(join(store, what, 'handler.py'), source)
        if (config !== undefined) writeFileSync(join(store, what, 'model-config.yaml'), `${config}\n`)
      }
      server = await startServer({
        modelStore: store,
        models: ['all'],
        config: { python, max_response_size: 100_000, default_workers_per_model: 1 },
      })
    }, PYTHON_MS)

    afterAll(() => server.stop())

    test.each(MISTAKES)(
      '$what',
      async ({ what, answer: [status, text], log }) => {
        const ask = () =>
          rawRequest(server.ports.inference, `/predictions/${what}`, {
            headers: { 'content-type': 'text/plain' },
            body: 'hi',
          })
        // Until its worker has tried to load it.
        const got = await server.until(ask, (each) => each.status === status, PYTHON_MS)
        expect(got.body.replaceAll('\\"', '"')).toContain(text)
        for (const words of log) await server.lines(words)
      },
      PYTHON_MS,
    )

    test('the texts are in docs/troubleshooting.md', () => {
      const page = readFileSync(join(REPOSITORY, 'docs', 'troubleshooting.md'), 'utf8')
      for (const { answer, log } of MISTAKES)
        for (const words of [answer[1], ...log.map((each) => each.replace(/^\): /, ''))])
          expect(page).toContain(words)
    })
  },
)
