/** As much of values.schema.json as the table of the values needs. */
interface Value {
  description?: string
  properties?: Record<string, Value>
}

/** The table of the chart's README: each value with its default and its description. */
export function valueTable(schema: Value, defaults: Record<string, unknown>): string {
  return ['| Value | Default | Meaning |', '|---|---|---|', ...rows(schema, '', defaults)].join('\n')
}

function rows({ properties = {} }: Value, path: string, defaults: unknown): string[] {
  return Object.entries(properties).flatMap(([name, value]) => {
    const inside = path === '' ? name : `${path}.${name}`
    if (inside === 'global') return []
    const given = (defaults as Record<string, unknown>)[name]
    const isGroup = value.properties !== undefined && inside !== 'config' && !inside.startsWith('probes.')
    if (isGroup) return rows(value, inside, given)
    const meaning = (value.description ?? '').replaceAll('|', '\\|')
    return [`| \`${inside}\` | \`${JSON.stringify(given)}\` | ${meaning} |`]
  })
}
