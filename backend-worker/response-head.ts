import { isObject, setOwn } from '../common/json.ts'

/** Status and headers that a handler set for one response; sent with its first item. */
export interface ResponseHead {
  status?: number
  reason?: string
  contentType?: string
  headers?: Record<string, string>
}

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/

const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const MAX_VALUE_CHARACTERS = 8192
const MAX_HEADERS = 64

/** @throws RangeError when the status is not an integer from 200 to 599 */
export function setStatus(head: ResponseHead, status: number, reason?: string): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new RangeError(`The status of a response must be a whole number from 200 to 599, not ${status}`)
  }
  head.status = status
  head.reason = reason === undefined ? undefined : checkedValue('reason phrase', reason)
}

/** @throws TypeError when name or value is not valid in an HTTP header */
export function setHeader(head: ResponseHead, name: string, value: string): void {
  if (!HEADER_NAME.test(name)) {
    throw new TypeError(`"${name.slice(0, 80)}" is not a valid header name`)
  }
  if (name.toLowerCase() === 'content-type') {
    setContentType(head, value)
    return
  }
  head.headers ??= {}
  if (Object.keys(head.headers).length >= MAX_HEADERS && !Object.hasOwn(head.headers, name)) {
    throw new RangeError(`A response must not have more than ${MAX_HEADERS} headers`)
  }
  setOwn(head.headers, name, checkedValue(`header ${name}`, value))
}

/** @throws TypeError when it is not valid in an HTTP header */
export function setContentType(head: ResponseHead, contentType: string): void {
  head.contentType = checkedValue('content type', contentType)
}

/** Handlers may be plain JavaScript: numbers and other values are converted to strings. */
function checkedValue(what: string, value: unknown): string {
  const isPlain = isObject(value) && value['toString'] === Object.prototype.toString
  const text = isPlain ? JSON.stringify(value) : String(value)
  if (text.length > MAX_VALUE_CHARACTERS)
    throw new RangeError(`The ${what} must not be longer than ${MAX_VALUE_CHARACTERS} characters`)
  if (!FIELD_VALUE.test(text))
    throw new TypeError(`The ${what} has characters that are not valid in a header`)
  return text
}
