import { ServeError } from '../../../common/errors.ts'
import { isObject, parseJson } from '../../../common/json.ts'
import type { ChatMessage, ContentPart, ToolCall } from '../../../common/openai/types.ts'
import type { TextTensors } from './text-tensors.ts'

/**
 * Reads chat messages from the tensors role, content, type, tool_calls and tool_call_id
 * (docs/open-inference.md). For one message, content and type have one entry per part. For several, each
 * entry is a JSON list with the parts of its message, or its text if its type is not a list.
 * @throws ServeError INVALID_TENSOR
 */
export function messagesOf(tensors: TextTensors): ChatMessage[] {
  const roles = tensors.texts('role') ?? []
  const contents = tensors.texts('content') ?? []
  if (roles.length === 0) throw tensors.refusal('role', 'must have at least one entry')
  const types = tensors.texts('type', contents.length) ?? contents.map(() => 'text')
  const calls = tensors.texts('tool_calls', roles.length)
  const ids = tensors.texts('tool_call_id', roles.length)
  if (contents.length === 0 && calls === undefined) throw tensors.refusal('content', 'must not be empty')
  if (roles.length > 1 && contents.length !== roles.length)
    throw tensors.refusal('content', `has ${contents.length} entries for ${roles.length} messages`)
  const contentOf = (i: number): string | ContentPart[] =>
    roles.length === 1
      ? joined(contents.map((each, k) => part(each, types[k]!)))
      : entry(contents[i]!, types[i]!)
  return roles.map((role, i) => message(role, contentOf(i), callsOf(calls?.[i]), ids?.[i]))
}

function message(
  role: string,
  said: string | ContentPart[],
  calls: ToolCall[] | undefined,
  callId = '',
): ChatMessage {
  return {
    role,
    content: calls !== undefined && said === '' ? null : said,
    ...(calls !== undefined && { tool_calls: calls }),
    ...(callId !== '' && { tool_call_id: callId }),
  }
}

/** One of several messages. */
function entry(content: string, type: string): string | ContentPart[] {
  const types = list(type)
  if (types === undefined) return joined([part(content, type)])
  const parts = list(content)
  if (parts?.length !== types.length)
    throw refusal('content and type of a message must be lists of equal length')
  return joined(
    parts.map((each, i) => part(typeof each === 'string' ? each : JSON.stringify(each), String(types[i]))),
  )
}

/** A single text needs no list of parts. */
function joined(parts: ContentPart[]): string | ContentPart[] {
  const [first, ...others] = parts
  if (first === undefined) return ''
  return others.length === 0 && first.type === 'text' ? first.text! : parts
}

/** Text is passed unchanged. Another type is JSON (the whole part or its content), or the URL of an image. */
function part(text: string, type: string): ContentPart {
  if (type === 'text' || type === '') return { type: 'text', text }
  const value = parseJson(text)
  if (isObject(value) && value['type'] === type) return value as ContentPart
  if (value === undefined && type === 'image_url') return { type, image_url: { url: text } }
  if (value === undefined) throw refusal(`a part of type ${type.slice(0, 50)} must be JSON`)
  return { type, [type]: type === 'image_url' && typeof value === 'string' ? { url: value } : value }
}

/** A JSON list of JSON strings; an empty string means none. */
function callsOf(text: string | undefined): ToolCall[] | undefined {
  if (text === undefined || text === '') return undefined
  const calls = list(text)?.map((call) => (typeof call === 'string' ? parseJson(call) : call))
  if (calls?.every(isObject) !== true) throw refusal('tool_calls must be a JSON list of calls')
  return calls.length === 0 ? undefined : (calls as unknown as ToolCall[])
}

function list(text: string): unknown[] | undefined {
  const value = text.startsWith('[') ? parseJson(text) : undefined
  return Array.isArray(value) ? value : undefined
}

function refusal(why: string): ServeError {
  return new ServeError('INVALID_TENSOR', `The messages are not valid: ${why}`)
}
