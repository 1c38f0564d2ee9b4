/** Maximum depth of objects and arrays in a client's JSON, where no other limit applies. */
export const MAX_NESTING = 100

/**
 * Whether a JSON value exceeds the depth. JSON.parse accepts any depth, but JSON.stringify would overflow the
 * stack.
 */
export function isNestedTooDeep(value: unknown, levels = MAX_NESTING): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  return Object.values(value).some((child) => isNestedTooDeep(child, levels - 1))
}
