import type { LlamaGrammar } from 'node-llama-cpp'
import {
  type ChatCompletionRequest,
  type ChatMessage,
  messageText,
  OpenAIError,
  type ResponseFormat,
  type Tool,
} from 'torchserve-ts'
import { isObject, parseJson } from '../../common/json.ts'
import type { Engine } from './engine.ts'
import { literal, union } from './gbnf.ts'
import { JsonGrammar } from './json-grammar.ts'
import type { Fields } from './settings.ts'

/** How a request uses tools. */
export interface ToolUse {
  tools: readonly Tool[]
  /** Whether the answer must be a tool call. */
  forced: boolean
}

/** @throws OpenAIError 400 when the request does not contain the chosen tool */
export function toolUse({ tools, tool_choice: choice }: ChatCompletionRequest): ToolUse {
  const given = tools ?? []
  if (choice === 'none' || given.length === 0) return { tools: [], forced: false }
  if (choice == null || choice === 'auto') return { tools: given, forced: false }
  if (choice === 'required') return { tools: given, forced: true }
  const name = choice.function?.name
  const chosen = given.filter((tool) => tool.function.name === name)
  if (chosen.length === 0)
    throw new OpenAIError(`tool_choice must name a tool of the request, found ${name}`, 400, {
      param: 'tool_choice',
    })
  return { tools: chosen, forced: true }
}

/** Adds the tools to the system message, for templates without tool support (docs/openai.md). */
export function withToolsTold(messages: readonly ChatMessage[], tools: readonly Tool[]): ChatMessage[] {
  const how = 'To call a function, answer only {"name": ..., "arguments": {...}}. Functions:'
  const told = [how, ...tools.map(({ function: tool }) => JSON.stringify(tool))].join('\n')
  const [first, ...others] = messages
  if (first?.role !== 'system' && first?.role !== 'developer')
    return [{ role: 'system', content: told }, ...messages]
  return [{ ...first, content: `${messageText(first)}\n\n${told}` }, ...others]
}

/** Start of the answer when only one tool can be called: the model then generates only the arguments. */
export function callBeginning({ tools, forced }: ToolUse): string {
  const name = tools[0]?.function.name
  return forced && tools.length === 1 ? `{"name": ${JSON.stringify(name)}, "arguments": ` : ''
}

/**
 * Grammar for a call of one of the tools; for a single tool, for its arguments.
 * @param all tools of the request
 * @throws OpenAIError 400 for a schema that is not supported
 */
export function callGrammar(
  engine: Engine,
  tools: readonly Tool[],
  all: readonly Tool[],
): Promise<LlamaGrammar> {
  const grammar = new JsonGrammar()
  const calls = tools.map((tool) => {
    const { name, parameters } = tool.function
    const schema = { type: 'object', ...(parameters ?? { properties: {} }) }
    const values = grammar.schema(schema, `tools[${all.indexOf(tool)}].function.parameters`)
    const head = literal(`{"name": ${JSON.stringify(name)}, "arguments": `)
    return tools.length === 1 ? values : `${head} ${values} "}"`
  })
  return parsed(engine, grammar.text(union(calls)), 'tools')
}

/** @throws OpenAIError 400 for a schema that is not supported */
export function formatGrammar(engine: Engine, format: ResponseFormat): Promise<LlamaGrammar> {
  const grammar = new JsonGrammar()
  const [schema, place] =
    format.type === 'json_schema'
      ? [format.json_schema.schema, 'json_schema.schema']
      : [(format as { schema?: unknown }).schema, 'schema']
  const values = grammar.schema(schema ?? { type: 'object' }, `response_format.${place}`)
  return parsed(engine, grammar.text(values), 'response_format')
}

async function parsed(engine: Engine, gbnf: string, param: string): Promise<LlamaGrammar> {
  try {
    return await engine.grammar(gbnf)
  } catch {
    throw new OpenAIError('This JSON schema is not supported: it refers to itself', 400, { param })
  }
}

/** A tool call; the arguments are JSON. */
interface Call {
  name: string
  arguments: string
}

/** Finds the end of a JSON object that arrives in pieces. */
export class ObjectEnd {
  #depth = 0
  #quoted = false
  #escaped = false

  /** Index behind the object's closing brace; -1: the object goes on. */
  find(piece: string, from = 0): number {
    for (let at = from; at < piece.length; at++) {
      const character = piece[at]
      if (this.#escaped) this.#escaped = false
      else if (this.#quoted && character === '\\') this.#escaped = true
      else if (character === '"') this.#quoted = !this.#quoted
      else if (this.#quoted) continue
      else if (character === '{') this.#depth++
      else if (character === '}' && --this.#depth === 0) return at + 1
    }
    return -1
  }
}

/** Begin of a call up to its arguments, which can then be sent while they are generated. */
const HEAD = /^\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/
const FIRST_KEY = /^\{\s*(?:"([^"]*)("?))?/
/** Keys of the objects by which models call tools. */
const KEYS = ['name', 'arguments', 'parameters', 'type', 'function', 'id']

/** The name, and where the arguments begin; undefined: they do not follow the name, or not yet. */
export function headOf(object: string): { name: string; length: number } | undefined {
  const head = HEAD.exec(object)
  return head === null ? undefined : { name: head[1]!, length: head[0].length }
}

/** Whether an object that has begun is like a call; undefined: its first key is not known yet. */
export function beginsCall(object: string): boolean | undefined {
  const [begun, key, quote] = FIRST_KEY.exec(object)!
  if (quote === '"') return KEYS.includes(key!)
  const mayBecome = begun.length === object.length && KEYS.some((known) => known.startsWith(key ?? ''))
  return mayBecome ? undefined : false
}

/**
 * The call that a whole object is, whatever the order of its keys; undefined: none.
 * @param needsArguments whether an object without arguments is none
 */
export function callOf(object: string, needsArguments: boolean): Call | undefined {
  const value = objectIn(object)
  const call = isObject(value?.['function']) ? value['function'] : (value ?? {})
  const { name, parameters, arguments: given = parameters } = call
  if (typeof name !== 'string' || (given === undefined && needsArguments)) return undefined
  const values = typeof given === 'string' ? given : JSON.stringify(given ?? {})
  return objectIn(values) === undefined ? undefined : { name, arguments: values }
}

function objectIn(json: string): Fields | undefined {
  const value = parseJson(json)
  return isObject(value) ? value : undefined
}
