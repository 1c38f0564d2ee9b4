import {
  getLlama,
  LlamaLogLevel,
  type Llama,
  type LlamaContext,
  type LlamaEmbeddingContext,
  type LlamaGrammar,
  type LlamaModel,
  type Token,
} from 'node-llama-cpp'
import { OpenAIError, type Logger } from 'torchserve-ts'
import { within } from '../../common/timer.ts'
import { memoryBytes, processors } from '../../common/processors.ts'
import { checkWeights, memoryWarning } from './check-weights.ts'
import { Generation, type Piece, type Sampling } from './generation.ts'
import { Interlude, Turns } from './turns.ts'
import { type LlamaSettings, record } from './settings.ts'
import { prepareSampling } from './native-sampling.ts'

const DEFAULT_CONTEXT_SIZE = 4096
/** Milliseconds by which the runtime's log may lag behind its error. */
const LOG_LAG_MS = 2_000
/** Maximum characters per token of known models; longer prompts are rejected before they are tokenized. */
const MAX_CHARACTERS_PER_TOKEN = 64

/**
 * A loaded GGUF model and its context. Each generation has its own sequence; the runtime computes them
 * together.
 */
export class Engine {
  readonly #llama: Llama
  readonly #context: LlamaContext
  readonly #turns: Turns
  readonly #interlude = new Interlude()
  readonly model: LlamaModel
  /** Threads that compute a token. */
  readonly threads: number
  #embedding: Promise<LlamaEmbeddingContext> | undefined
  readonly #oneEmbedding = new Turns(1)
  #vocabularySize: number | undefined

  private constructor(llama: Llama, model: LlamaModel, context: LlamaContext, threads: number) {
    this.#llama = llama
    this.model = model
    this.#context = context
    this.threads = threads
    this.#turns = new Turns(context.totalSequences)
  }

  static async load(settings: LlamaSettings, logger: Logger): Promise<Engine> {
    const { modelPath, gpuLayers } = settings
    checkWeights(modelPath)
    let firstError: string | undefined
    let onError!: () => void
    const told = new Promise<void>((resolve) => (onError = resolve))
    const llama = await getLlama({
      gpu: settings.gpu,
      build: 'never',
      skipDownload: true,
      logger: (level, message) => {
        if (level === LlamaLogLevel.error) {
          firstError ??= message.trim()
          onError()
        }
        log(logger, level, message)
      },
    })
    const warning = llama.gpu === false ? memoryWarning(modelPath, memoryBytes()) : undefined
    if (warning !== undefined) logger.warn(warning)
    const model = await llama
      .loadModel({ modelPath, ...(gpuLayers !== undefined && { gpuLayers }) })
      .catch(async (thrown: unknown) => {
        // The runtime's own error does not say why, but its log, which may come after it.
        await within(LOG_LAG_MS, told)
        throw firstError === undefined ? thrown : new Error(firstError, { cause: thrown })
      })
    const threads = settings.threads ?? defaultThreads(llama)
    const context = await model.createContext({
      contextSize: settings.contextSize ?? Math.min(model.trainContextSize, DEFAULT_CONTEXT_SIZE),
      sequences: settings.sequences,
      threads,
    })
    prepareSampling(context)
    const engine = new Engine(llama, model, context, threads)
    if (!engine.onlyEmbeds) await engine.#warmUp()
    return engine
  }

  /** Tokens of prompt and answer together. */
  get contextSize(): number {
    return this.#context.contextSize
  }

  /** Whether the model makes only embeddings: it reads in both directions, or its file says how to pool. */
  get onlyEmbeds(): boolean {
    const { metadata } = this.model.fileInfo
    const own = record(record(metadata)[metadata.general.architecture])
    return record(own['attention'])['causal'] === false || (own['pooling_type'] ?? 0) !== 0
  }

  get vocabularySize(): number {
    return (this.#vocabularySize ??= [...this.model.iterateAllTokens()].length)
  }

  /** Texts of the special tokens, which end messages or name roles. */
  specialTexts(): string[] {
    const texts = this.model.fileInfo.metadata.tokenizer.ggml.tokens
    return [...this.model.iterateAllTokens()].flatMap((token) => {
      const { control, unknown } = this.model.getTokenAttributes(token)
      return (control || unknown) && texts[token] ? [texts[token]] : []
    })
  }

  /**
   * Tokenizes the start of a prompt, with the model's begin-of-text token if it has one.
   * @param special whether texts of special tokens become these tokens
   * @throws OpenAIError 400 when the text does not fit
   */
  promptTokens(text: string, special = false): Token[] {
    this.checkLength(text.length)
    const { bos, shouldPrependBosToken } = this.model.tokens
    const tokens = this.model.tokenize(text, special)
    return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
  }

  /** @throws OpenAIError 400 when a text of this length does not fit */
  checkLength(characters: number): void {
    if (characters > this.contextSize * MAX_CHARACTERS_PER_TOKEN)
      throw tooLong(`${characters} characters`, this.contextSize)
  }

  /**
   * Each message takes a token at least, and a template some time: tens of thousands keep the worker from
   * other chats.
   * @throws OpenAIError 400 when so many messages do not fit
   */
  checkMessages(count: number): void {
    if (count > this.contextSize) throw tooLong(`${count} messages`, this.contextSize)
  }

  /** Number of tokens that fit after a prompt. @throws OpenAIError 400 when none do */
  roomAfter(promptTokens: number): number {
    const room = this.contextSize - promptTokens
    if (room > 0) return room
    throw tooLong(`${promptTokens} tokens`, this.contextSize)
  }

  /**
   * Continues a non-empty prompt. Waits for a free sequence, and gives it up for a while to a request that
   * has fewer. A request is known by its signal.
   * @throws OpenAIError 400 for a prompt that does not fit; the signal's reason once it is aborted
   */
  async *generate(prompt: readonly Token[], sampling: Sampling, signal: AbortSignal): AsyncGenerator<Piece> {
    if (this.onlyEmbeds) throw new OpenAIError('This model makes only embeddings: use /v1/embeddings', 400)
    const maxTokens = Math.min(sampling.maxTokens, this.roomAfter(prompt.length))
    const generation = new Generation(this.model, prompt, { ...sampling, maxTokens })
    while (!generation.ended) {
      const turn = await this.#turns.take(signal)
      try {
        const sequence = this.#context.getSequence()
        try {
          yield* generation.run(sequence, turn, this.#interlude, signal)
        } finally {
          await this.#interlude.during(() => sequence.dispose())
        }
      } finally {
        this.#turns.giveBack(turn)
      }
    }
  }

  /** @throws Error when the grammar cannot be parsed */
  grammar(gbnf: string): Promise<LlamaGrammar> {
    return this.#llama.createGrammar({ grammar: gbnf })
  }

  /** The embedding of a text, one text at a time. Creates the embedding context on first use. */
  async embed(tokens: Token[], signal: AbortSignal): Promise<readonly number[]> {
    if (tokens.length > this.contextSize) throw tooLong(`${tokens.length} tokens`, this.contextSize)
    const turn = await this.#oneEmbedding.take(signal)
    try {
      const { contextSize, threads } = this
      this.#embedding ??= this.model.createEmbeddingContext({ contextSize, threads })
      const { vector } = await (await this.#embedding).getEmbeddingFor(tokens)
      return vector
    } finally {
      this.#oneEmbedding.giveBack(turn)
    }
  }

  async dispose(): Promise<void> {
    await (await this.#embedding)?.dispose()
    await this.#context.dispose()
    await this.model.dispose()
    await this.#llama.dispose()
  }

  /** The first token takes llama.cpp ten times as long as later ones; no client should wait for that. */
  async #warmUp(): Promise<void> {
    const sampling = {
      maxTokens: 2,
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      seed: 0,
      stop: [],
      repeatPenalty: 1,
    }
    const never = new AbortController().signal
    for await (const _piece of this.generate(this.promptTokens('The'), sampling, never));
  }
}

function tooLong(length: string, contextSize: number): OpenAIError {
  const message = `The prompt of ${length} must fit into the context of ${contextSize} tokens`
  return new OpenAIError(message, 400, { code: 'context_length_exceeded' })
}

function log(logger: Logger, level: LlamaLogLevel, message: string): void {
  const text = `llama.cpp: ${message.trim()}`
  if (level === LlamaLogLevel.error || level === LlamaLogLevel.fatal) logger.error(text)
  else if (level === LlamaLogLevel.warn) logger.warn(text)
  else logger.debug(text)
}

/**
 * llama.cpp's threads wait for each other busily after each part of a token: with one more than there are
 * idle cores, a token of a small model takes a hundred times as long. One core stays for the server, and the
 * server tells each worker its share of the others.
 */
function defaultThreads({ cpuMathCores }: Llama): number {
  const share = Number(process.env['TORCHSERVE_TS_THREADS'] ?? Infinity)
  return Math.max(1, Math.min(cpuMathCores, processors() - 1, share))
}
