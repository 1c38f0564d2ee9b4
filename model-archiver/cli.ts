#!/usr/bin/env node
import { refuseOldNode } from '../common/node-version.ts'

refuseOldNode()
await (await import('./commands.ts')).runModelArchiver()
