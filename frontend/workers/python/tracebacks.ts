import { posix } from 'node:path'
import { fileBelow } from '../../../model-archiver/handler-entry.ts'

/** The model that a worker loads, for hints. */
interface LoadedModel {
  readonly modelDir: string
  /** As in its manifest. */
  readonly handler: string
}

/** An exception of which Python has printed the traceback. */
interface Raised {
  /** `ModuleNotFoundError: No module named 'x'` */
  readonly what: string
  /** The innermost line that is not of a library: `handler.py, line 4`. */
  readonly place: string | undefined
  /** Whether TorchServe's first call of a function, which has no requests, led to it. */
  readonly inFirstCall: boolean
}

const BEGIN = 'Traceback (most recent call last):'
const FRAME = /^ {2}File "([^"]+)", line (\d+)/
const LIBRARY =
  /^<|\/site-packages\/|\/dist-packages\/|\/lib\/python\d|\/ts\/(?:model_|service|torch_handler)/
/** The line of ts/model_loader.py that calls a function when it loads the model. */
const FIRST_CALL = 'lambda ctx: entry_point(None, ctx)'
/** Where TorchServe looks when a module of the model did not import: the traceback before has the cause. */
const FALLBACK = "ModuleNotFoundError: No module named 'ts.torch_handler."
/** How TorchServe ends a worker that has told of the exception already. */
const OWN_END = /^RuntimeError: \d+ - /
/**
 * It has no message. The name alone ends the traceback of each attempt, by which programs find it in the log
 * (TorchServe's test_handler_traceback_logging.py does), so it stands nowhere else.
 */
const ASSERTION = 'AssertionError'
/** What is kept of an exception. Characters. */
const MAX_LENGTH = 500

/**
 * Finds the exception that ended a load in what the worker prints. It keeps one exception, whatever is
 * printed: a chain of tracebacks is longer than the lines that are kept of a worker.
 */
export class Tracebacks {
  readonly #model: LoadedModel
  #raised: Raised | undefined
  #isOpen = false
  #place: string | undefined
  #inFirstCall = false

  constructor(model: LoadedModel) {
    this.#model = model
  }

  read(line: string): void {
    if (line === BEGIN) {
      this.#isOpen = true
      this.#place = undefined
      this.#inFirstCall = false
    } else if (this.#isOpen) this.#inside(line)
  }

  /** The last exception and what mends it, as one line; undefined: none was printed. */
  get told(): string | undefined {
    if (this.#raised === undefined) return undefined
    const { what, place } = this.#raised
    const hint = hintFor(this.#raised, this.#model)
    return `${what}${place === undefined ? '' : ` (${place})`}${hint === undefined ? '' : `. ${hint}`}`
  }

  #inside(line: string): void {
    const frame = FRAME.exec(line)
    if (frame !== null && !LIBRARY.test(frame[1]!))
      this.#place = `${frame[1]!.split(/[\\/]/).at(-1)}, line ${frame[2]}`
    if (line.includes(FIRST_CALL)) this.#inFirstCall = true
    if (line === '' || line.startsWith(' ')) return
    this.#isOpen = false
    if (this.#raised !== undefined && (line.startsWith(FALLBACK) || OWN_END.test(line))) return
    this.#raised = {
      what: line === ASSERTION ? 'An assertion failed' : line.slice(0, MAX_LENGTH),
      place: this.#place,
      inFirstCall: this.#inFirstCall,
    }
  }
}

function hintFor({ what, inFirstCall }: Raised, model: LoadedModel): string | undefined {
  if (what.startsWith(FALLBACK)) return NOT_IN_MODEL
  const module = /^ModuleNotFoundError: No module named '([^']+)'/.exec(what)?.[1]
  if (module !== undefined) return hintForModule(module, model)
  if (what.startsWith('FileNotFoundError'))
    return (
      'Relative paths begin in the folder of the model (context.system_properties["model_dir"]); --extra-files ' +
      'packs a file'
    )
  if (what.includes('Expected only one class in custom service code or a function entry point'))
    return 'A handler has a function handle(data, context), or exactly one class, with such a method'
  if (!inFirstCall) return undefined
  if (what.includes('positional argument')) return 'It is called as handle(data, context)'
  return 'TorchServe calls handle(None, context) once while it loads a model: begin with "if data is None: return None"'
}

const NOT_IN_MODEL = 'The handler of the manifest is not in the model'

/** Only a package of somebody else is installed. */
function hintForModule(module: string, { modelDir, handler }: LoadedModel): string {
  const name = module.split('.', 1)[0]!
  const file = fileBelow(modelDir, `${name}.py`) ?? fileBelow(modelDir, `${name}/__init__.py`)
  if (file !== undefined)
    return `The model has ${file}: Python imports ${name} only from the top folder of the model, where the archiver puts --handler and --extra-files`
  if (name === posix.basename(handler.split(':', 1)[0]!).split('.', 1)[0]) return NOT_IN_MODEL
  return (
    `Install it for the Python of the workers, which --check-archive names: python -m pip install ${name}. ` +
    'A file of your own is packed with --extra-files'
  )
}
