/** Tells the functions of a workflow's handler apart: the request header that names the node. */
export const FUNCTION_HEADER = 'ts_workflow_function'

/**
 * A handler module that serves all functions of a workflow's handler in one worker: it calls the one that the header of the
 * request names. The hooks `initialize` and `shutdown` of the handler run unless they are nodes themselves.
 * @param handler import specifier of the workflow's handler
 * @param names the functions; that they exist is checked when the worker loads
 */
export function functionsModule(handler: string, names: readonly string[]): string {
  return `import * as module from ${JSON.stringify(handler)}

const exported = { ...module['default'], ...module }
const names = ${JSON.stringify(names)}

function hook(name) {
  return names.includes(name) ? undefined : exported[name]
}

export async function initialize(context) {
  const missing = names.filter((name) => typeof exported[name] !== 'function')
  if (missing.length > 0) throw new Error('The workflow handler exports no function ' + missing.join(', '))
  await hook('initialize')?.(context)
}

export function handle(requests, context) {
  return exported[context.requestHeader(0, ${JSON.stringify(FUNCTION_HEADER)})](requests, context)
}

export async function shutdown() {
  await hook('shutdown')?.()
}
`
}
