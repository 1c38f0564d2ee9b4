/** Tells the functions of a workflow's handler apart: the request header that names the node. */
export const FUNCTION_HEADER = 'ts_workflow_function'

/**
 * A handler module that serves all functions of a workflow's handler in one worker: it calls the one that the header of the
 * request names. The hooks `initialize` and `shutdown` of the handler run unless they are nodes themselves.
 * @param handler path of the workflow's handler beside this module: JavaScript that Node can import. It is imported at run time, since
 * a bundle must not become a part of another one
 * @param names the functions; that they exist is checked when the worker loads
 */
export function functionsModule(handler: string, names: readonly string[]): string {
  return `const names = ${JSON.stringify(names)}

function hook(name) {
  return names.includes(name) ? undefined : exported[name]
}

let exported = {}

export async function initialize(context) {
  const module = await import(new URL(${JSON.stringify(handler)}, import.meta.url).href)
  exported = { ...module.default, ...module }
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
