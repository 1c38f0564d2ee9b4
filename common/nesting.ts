/** Levels of objects and lists that a client's JSON may have where nothing else bounds them. */
export const MAX_NESTING = 100

/** Whether a JSON value has more levels than that: JSON.parse takes any depth, but writing such a value again runs out of stack. */
export function isNestedTooDeep(value: unknown, levels = MAX_NESTING): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  return Object.values(value).some((child) => isNestedTooDeep(child, levels - 1))
}
