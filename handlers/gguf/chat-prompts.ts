import { Template } from '@huggingface/jinja'
import type { Token } from 'node-llama-cpp'
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
  /** Whether the prompt ends with `<think>`, so that the answer begins with reasoning. */
  thinks: boolean
}

/**
 * Stands behind the first character of a client's special token while the template is rendered: a client's
 * text must not become special tokens.
 */
const BREAK = '\uE000'

/** Renders chats as prompts, by the configured template, the model's own, or the server's default. */
export class ChatPrompts {
  readonly #engine: Engine
  readonly #template: Template | undefined
  readonly #knowsTools: boolean
  readonly #knowsDeveloper: boolean
  /** The model's special tokens, as texts and as broken texts. */
  readonly #special: RegExp
  readonly #broken: RegExp
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
    this.#knowsDeveloper = text?.includes('developer') ?? false
    const special = engine.specialTexts()
    this.#special = anyOf(special)
    this.#broken = anyOf(special.map(broken))
  }

  /** @throws OpenAIError 400 when the template rejects the messages, or they do not fit into the context */
  render(messages: readonly ChatMessage[], tools: readonly Tool[]): ChatPrompt {
    this.#engine.checkMessages(messages.length)
    if (this.#template === undefined) {
      const tokens = this.#engine.promptTokens(defaultChatPrompt(messages))
      return { tokens, stops: DEFAULT_CHAT_STOPS, toolsTold: false, thinks: false }
    }
    const toolsTold = this.#knowsTools && tools.length > 0
    const harmless = (value: unknown) => mapTexts(value, (text) => text.replace(this.#special, broken))
    const rendered = this.#render(
      this.#template,
      harmless(messages.map((message) => this.#forTemplate(message))),
      toolsTold ? harmless(tools) : undefined,
    )
    const thinks = rendered.trimEnd().endsWith('<think>')
    return { tokens: this.#tokenize(rendered), stops: [], toolsTold, thinks }
  }

  /** A template that knows no developer would drop what he says. */
  #forTemplate(message: ChatMessage): Record<string, unknown> {
    const isDeveloper = message.role === 'developer' && !this.#knowsDeveloper
    const calls = message.tool_calls?.map((call) => ({
      ...call,
      function: { ...call.function, arguments: parsedArguments(call.function.arguments) },
    }))
    const role = isDeveloper ? 'system' : message.role
    return { ...message, role, content: messageText(message), tool_calls: calls }
  }

  #render(template: Template, messages: unknown, tools: unknown): string {
    const { bosString, eosString } = this.#engine.model.tokens
    try {
      return template.render({
        messages,
        tools,
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

  /**
   * The template's own text may contain special tokens; texts of the client may not. All but a client's
   * special tokens is tokenized together, as in training.
   */
  #tokenize(rendered: string): Token[] {
    const { model } = this.#engine
    this.#engine.checkLength(rendered.length)
    const tokens = rendered.split(this.#broken).flatMap((piece, i) => {
      const isBroken = i % 2 === 1
      const text = isBroken ? piece.replace(BREAK, '') : piece
      return model.tokenize(text, !isBroken, i > 0 ? 'trimLeadingSpace' : undefined)
    })
    const { bos, shouldPrependBosToken } = model.tokens
    return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
  }
}

function broken(text: string): string {
  return text.slice(0, 1) + BREAK + text.slice(1)
}

/** Matches any of the texts, the longest first, as one group. */
function anyOf(texts: readonly string[]): RegExp {
  const longestFirst = [...texts].sort((a, b) => b.length - a.length)
  const sources = longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  return new RegExp(`(${sources.length === 0 ? '(?!)' : sources.join('|')})`, 'g')
}

/** The value with each text in it, names of fields too, replaced. */
function mapTexts(value: unknown, replaced: (text: string) => string): unknown {
  if (typeof value === 'string') return replaced(value)
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, replaced))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [replaced(name), mapTexts(each, replaced)]),
  )
}

/** Templates need the arguments as an object; clients send them as text. */
function parsedArguments(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
