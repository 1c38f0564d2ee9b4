import {
  getLlama,
  LlamaCompletion,
  LlamaLogLevel,
  type Llama,
  type LlamaContext,
  type LlamaContextSequence,
  type LlamaModel,
} from 'node-llama-cpp'
import { PredictionException, type Logger } from 'torchserve-ts'
import type { Completion } from './parameters.ts'
import { Slots } from './slots.ts'
import type { LlamaSettings } from './settings.ts'

const DEFAULT_CONTEXT_SIZE = 4096
/** No token of a known model stands for more characters; longer prompts are refused before they are tokenized. */
const MAX_CHARACTERS_PER_TOKEN = 64

/** One loaded GGUF and its context with several sequences; each completion has a sequence of its own. */
export class Engine {
  readonly #llama: Llama
  readonly #model: LlamaModel
  readonly #context: LlamaContext
  readonly #slots: Slots

  private constructor(llama: Llama, model: LlamaModel, context: LlamaContext) {
    this.#llama = llama
    this.#model = model
    this.#context = context
    this.#slots = new Slots(context.totalSequences)
  }

  static async load(settings: LlamaSettings, logger: Logger): Promise<Engine> {
    const llama = await getLlama({
      gpu: settings.gpu,
      build: 'never',
      skipDownload: true,
      logger: (level, message) => {
        log(logger, level, message)
      },
    })
    const model = await llama.loadModel({ modelPath: settings.modelPath })
    const context = await model.createContext({
      contextSize: settings.contextSize ?? Math.min(model.trainContextSize, DEFAULT_CONTEXT_SIZE),
      sequences: settings.sequences,
      threads: settings.threads,
    })
    const engine = new Engine(llama, model, context)
    await engine.#warmUp()
    return engine
  }

  /** Tokens of prompt and answer together. */
  get contextSize(): number {
    return this.#context.contextSize
  }

  /**
   * Continues the prompt. `onText` gets each token's text as whole characters; the next token is not computed before
   * its promise is kept, so a slow reader slows only its own completion. Waits while all sequences are taken.
   * @returns the whole text
   * @throws PredictionException 400 for a prompt that does not fit; the signal's reason once it is aborted
   */
  async complete(
    wanted: Completion,
    signal: AbortSignal,
    onText: (text: string) => Promise<void> | undefined,
  ): Promise<string> {
    const room = this.#roomAfter(wanted.prompt)
    await this.#slots.take(signal)
    try {
      return await this.#run(wanted, Math.min(wanted.maxTokens, room), signal, onText)
    } finally {
      this.#slots.giveBack()
    }
  }

  async dispose(): Promise<void> {
    await this.#context.dispose()
    await this.#model.dispose()
    await this.#llama.dispose()
  }

  async #run(
    wanted: Completion,
    maxTokens: number,
    signal: AbortSignal,
    onText: (text: string) => Promise<void> | undefined,
  ): Promise<string> {
    const sequence = this.#context.getSequence()
    try {
      const pace = new Pace(signal)
      pace.governs(sequence)
      const text = await new LlamaCompletion({ contextSequence: sequence }).generateCompletion(
        wanted.prompt,
        {
          maxTokens,
          temperature: wanted.temperature,
          topP: wanted.topP,
          seed: wanted.seed,
          customStopTriggers: wanted.stop,
          contextShiftSize: 1,
          signal,
          onTextChunk: (chunk) => {
            if (chunk !== '') pace.waitFor(onText(chunk))
          },
        },
      )
      await pace.ready()
      return text
    } finally {
      await sequence.dispose()
    }
  }

  /** A first token takes llama.cpp ten times as long as a later one; no client should wait for that. */
  async #warmUp(): Promise<void> {
    const never = new AbortController().signal
    const wanted = { prompt: 'The', temperature: 0, topP: 1, seed: 0, stop: [], maxTokens: 2, stream: false }
    await this.complete(wanted, never, () => undefined)
  }

  /** Tokens that fit behind the prompt. */
  #roomAfter(prompt: string): number {
    const size = this.contextSize
    const tokens =
      prompt.length > size * MAX_CHARACTERS_PER_TOKEN ? Infinity : this.#model.tokenize(prompt).length
    const room = size - tokens - 1
    if (room > 0) return room
    const length = tokens === Infinity ? `${prompt.length} characters` : `${tokens} tokens`
    throw new PredictionException(`The prompt of ${length} does not fit the context of ${size} tokens`, 400)
  }
}

/**
 * Makes generation wait for its reader. The library calls back with each text and goes on at once; it takes its
 * tokens from `sequence.evaluate`, so that is where to hold it.
 */
class Pace {
  readonly #signal: AbortSignal
  #sending: Promise<void> | undefined

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  governs(sequence: LlamaContextSequence): void {
    const evaluate = sequence.evaluate.bind(sequence)
    const ready = this.ready.bind(this)
    sequence.evaluate = async function* (tokens, options) {
      for await (const token of evaluate(tokens, options)) {
        yield token
        await ready()
      }
    }
  }

  waitFor(sending: Promise<void> | undefined): void {
    this.#sending = sending
    // Heard in `ready`; until then its failure must not count as unhandled.
    sending?.catch(() => undefined)
  }

  async ready(): Promise<void> {
    await this.#sending
    this.#signal.throwIfAborted()
  }
}

function log(logger: Logger, level: LlamaLogLevel, message: string): void {
  const text = `llama.cpp: ${message.trim()}`
  if (level === LlamaLogLevel.error || level === LlamaLogLevel.fatal) logger.error(text)
  else if (level === LlamaLogLevel.warn) logger.warn(text)
  else logger.debug(text)
}
