import type { LlamaGrammar } from 'node-llama-cpp'
import {
  messageText,
  OpenAIError,
  type ChatCompletionRequest,
  type ChatMessage,
  type Tool,
} from 'torchserve-ts'
import type { Engine } from './engine.ts'

const NO_ARGUMENTS = { type: 'object', properties: {} }

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
 * @throws OpenAIError 400 for a schema that the runtime does not support
 */
export function callGrammar(engine: Engine, tools: readonly Tool[]): Promise<LlamaGrammar> {
  if (tools.length === 1) return grammar(engine, tools[0]!.function.parameters ?? NO_ARGUMENTS, 'tools')
  const calls = tools.map(({ function: { name, parameters } }) => ({
    type: 'object',
    properties: { name: { const: name }, arguments: parameters ?? NO_ARGUMENTS },
    required: ['name', 'arguments'],
  }))
  return grammar(engine, { oneOf: calls }, 'tools')
}

export async function grammar(
  engine: Engine,
  schema: Record<string, unknown> | undefined,
  param: string,
): Promise<LlamaGrammar> {
  try {
    return await engine.jsonGrammar(schema)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new OpenAIError(`This JSON schema is not supported: ${why}`, 400, { param })
  }
}
