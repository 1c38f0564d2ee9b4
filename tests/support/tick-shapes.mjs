// Shows, on stdout, which shape V8 gives the objects of Node's ticks before it collects garbage and after:
// `- map: 0x...`. Loaded into a server under test (node --import) it does so on SIGUSR2.
import { executionAsyncResource } from 'node:async_hooks'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext, runInThisContext } from 'node:vm'

setFlagsFromString('--allow-natives-syntax')
setFlagsFromString('--expose-gc')
const show = runInThisContext('(object) => { %DebugPrint(object) }')
const collect = runInNewContext('gc')
/** V8 keeps shapes that nothing has for a few collections. */
const COLLECTIONS = 6

function showTick() {
  return new Promise((resolve) => {
    process.nextTick(() => {
      show(executionAsyncResource())
      resolve()
    })
  })
}

export async function showShapes() {
  await showTick()
  for (let i = 0; i < COLLECTIONS; i += 1) {
    // Nothing is under way then.
    await setTimeout(10)
    collect()
  }
  await showTick()
}

process.on('SIGUSR2', () => void showShapes())
