/** Maximum depth of objects and arrays in a client's JSON, where no other limit applies. */
export const MAX_NESTING = 100

/**
 * Whether a JSON value exceeds the depth. JSON.parse accepts any depth, but JSON.stringify would overflow the
 * stack.
 */
export function isNestedTooDeep(value: unknown, levels = MAX_NESTING): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  // Without a function call or a copy for each of a million numbers.
  for (const child of Array.isArray(value) ? (value as unknown[]) : Object.values(value)) {
    if (typeof child === 'object' && child !== null && isNestedTooDeep(child, levels - 1)) return true
  }
  return false
}
