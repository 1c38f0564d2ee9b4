import { Template } from '@huggingface/jinja'
import type { LlamaModel, Token } from 'node-llama-cpp'
import {
  DEFAULT_CHAT_STOPS,
  defaultChatPrompt,
  messageText,
  OpenAIError,
  type ChatMessage,
  type Tool,
} from 'torchserve-ts'
import type { Engine } from './engine.ts'

/** A rendered chat, ready for the model. */
export interface ChatPrompt {
  tokens: Token[]
  /** Texts that end the answer, besides the model's own end tokens. */
  stops: readonly string[]
  /** Whether the template told the model about the tools. */
  toolsTold: boolean
}

/** Replaces message texts while the template is rendered: a client's text must not become special tokens. */
const MARK = /\uE000(\d+)\uE001/

/** Renders chats as prompts, by the configured template, the model's own, or the server's default. */
export class ChatPrompts {
  readonly #engine: Engine
  readonly #template: Template | undefined
  readonly #knowsTools: boolean
  readonly #trims: boolean
  /** Used in the log. */
  readonly source: 'the configured' | 'the model’s own' | 'the default'

  /** @throws Error when the template cannot be parsed; the model then fails to load */
  constructor(engine: Engine, configured: string | undefined) {
    this.#engine = engine
    const own = engine.model.fileInfo.metadata.tokenizer.chat_template
    const text = configured ?? own
    this.source =
      configured !== undefined ? 'the configured' : own !== undefined ? 'the model’s own' : 'the default'
    this.#template = text === undefined ? undefined : new Template(text)
    this.#knowsTools = text?.includes('tools') ?? false
    this.#trims = text !== undefined && /\|\s*trim\b|\.strip\(/.test(text)
  }

  /** @throws OpenAIError 400 when the template rejects the messages, or they do not fit into the context */
  render(messages: readonly ChatMessage[], tools: readonly Tool[]): ChatPrompt {
    this.#engine.checkMessages(messages.length)
    if (this.#template === undefined) {
      const tokens = this.#engine.promptTokens(defaultChatPrompt(messages))
      return { tokens, stops: DEFAULT_CHAT_STOPS, toolsTold: false }
    }
    const texts: string[] = []
    const marked = messages.map((message) => this.#marked(message, texts))
    const toolsTold = this.#knowsTools && tools.length > 0
    const rendered = this.#render(this.#template, marked, toolsTold ? tools : undefined)
    return { tokens: this.#tokenize(rendered, texts), stops: [], toolsTold }
  }

  #marked(message: ChatMessage, texts: string[]): Record<string, unknown> {
    const text = messageText(message)
    const calls = message.tool_calls?.map((call) => ({
      ...call,
      function: { ...call.function, arguments: parsedArguments(call.function.arguments) },
    }))
    if (text === '') return { ...message, content: '', tool_calls: calls }
    texts.push(this.#trims ? text.trim() : text)
    return { ...message, content: `\uE000${texts.length - 1}\uE001`, tool_calls: calls }
  }

  #render(template: Template, messages: unknown[], tools: readonly Tool[] | undefined): string {
    const { bosString, eosString } = this.#engine.model.tokens
    try {
      return template.render({
        messages,
        tools: tools as unknown,
        add_generation_prompt: true,
        bos_token: bosString ?? '',
        eos_token: eosString ?? '',
      })
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      throw new OpenAIError(`The model's chat template does not support these messages: ${why}`, 400, {
        param: 'messages',
      })
    }
  }

  /** The template's own text may contain special tokens; texts of the client may not. */
  #tokenize(rendered: string, texts: readonly string[]): Token[] {
    const { model } = this.#engine
    const pieces = rendered.split(MARK).map((piece, i) => ({
      text: i % 2 === 0 ? piece : (texts[Number(piece)] ?? ''),
      special: i % 2 === 0,
    }))
    this.#engine.checkLength(pieces.reduce((sum, { text }) => sum + text.length, 0))
    const tokens = texts.some((text) => namesSpecialToken(model, text))
      ? pieces.flatMap(({ text, special }, i) =>
          model.tokenize(text, special, i > 0 ? 'trimLeadingSpace' : undefined),
        )
      : model.tokenize(pieces.map(({ text }) => text).join(''), true)
    const { bos, shouldPrependBosToken } = model.tokens
    return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
  }
}

/**
 * Only then is a client's text tokenized separately; otherwise everything is tokenized together, as in
 * training.
 */
function namesSpecialToken(model: LlamaModel, text: string): boolean {
  const plain = model.tokenize(text)
  const special = model.tokenize(text, true)
  return plain.length !== special.length || plain.some((token, i) => token !== special[i])
}

/** Templates need the arguments as an object; clients send them as text. */
function parsedArguments(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
