// Written by `blackboard setup`, which replaces and removes this file: changes here are lost.
//
// Passes what happens in OpenCode to `blackboard hook opencode` as one JSON object on its standard input:
// { event, session_id, parent_id?, cwd, tool_name?, tool_input?: { files } }. Its answer, if any, is one JSON object:
// { context?, env?, deny? }. Whatever goes wrong on the way is silence.

import { spawn } from "node:child_process"

const LIMIT_MS = 2000

const call = (input) =>
  new Promise((resolve) => {
    const child = spawn("blackboard", ["hook", "opencode"], { cwd: input.cwd, stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), LIMIT_MS)
    let said = ""
    child.stdout.on("data", (bytes) => (said += bytes))
    child.stdin.on("error", () => {})
    child.on("error", () => {
      clearTimeout(timer)
      resolve({})
    })
    child.on("close", () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(said) ?? {})
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(input))
  })

export const Blackboard = async ({ directory }) => {
  // One process hosts many sessions: what waits to be told to each, and what its shells are to know.
  const sessions = new Map()

  const tell = async (event, session_id, more = {}) => {
    if (!session_id) return {}
    const session = sessions.get(session_id) ?? { context: [], env: {} }
    sessions.set(session_id, session)
    const answer = await call({ event, session_id, cwd: directory, ...more })
    if (answer.context) session.context.push(answer.context)
    Object.assign(session.env, answer.env)
    return answer
  }

  const end = async (session_id) => {
    await tell("session.deleted", session_id)
    sessions.delete(session_id)
  }

  // Of what a tool is given, only which files it is about leaves this process.
  const about = ({ tool }, args) => {
    const patch = String(args?.patchText ?? "").matchAll(/^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm)
    const files = args?.filePath ? [args.filePath] : [...patch].map(([, file]) => file.trim())
    return { tool_name: tool, tool_input: { files } }
  }

  return {
    event: async ({ event }) => {
      const { info, sessionID } = event.properties ?? {}
      if (event.type === "session.created") await tell(event.type, info?.id, { parent_id: info?.parentID })
      if (event.type === "session.idle") await tell(event.type, sessionID)
      if (event.type === "session.deleted") await end(info?.id)
    },
    "chat.message": async (input) => {
      await tell("chat.message", input.sessionID)
    },
    "tool.execute.before": async (input, output) => {
      const { deny } = await tell("tool.execute.before", input.sessionID, about(input, output.args))
      if (deny) throw new Error(deny)
    },
    "tool.execute.after": async (input) => {
      await tell("tool.execute.after", input.sessionID, about(input, input.args))
    },
    "shell.env": async (input, output) => {
      Object.assign(output.env, sessions.get(input.sessionID)?.env)
    },
    "experimental.chat.system.transform": async (input, output) => {
      output.system.push(...(sessions.get(input.sessionID)?.context.splice(0) ?? []))
    },
    dispose: async () => {
      await Promise.all([...sessions.keys()].map(end))
    },
  }
}
