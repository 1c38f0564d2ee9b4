import type { LlamaGrammar } from 'node-llama-cpp'
import {
  messageText,
  OpenAIError,
  type ChatCompletionRequest,
  type ChatMessage,
  type ResponseFormat,
  type Tool,
} from 'torchserve-ts'
import type { Engine } from './engine.ts'
import { literal, union } from './gbnf.ts'
import { JsonGrammar } from './json-grammar.ts'

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
