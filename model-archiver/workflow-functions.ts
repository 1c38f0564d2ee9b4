/** Request header with the name of the node whose function to call. */
export const FUNCTION_HEADER = 'ts_workflow_function'

/**
 * Source of a handler module that serves all functions of a workflow's handler in one worker: it calls the
 * function that the request's header names. Runs the handler's hooks `initialize` and `shutdown` unless they
 * are nodes themselves.
 * @param handler path of the workflow's handler beside this module: JavaScript that Node can import. Imported
 *   at run time, because one bundle must not contain another
 * @param names the functions; the worker checks that they exist when it loads the module
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
