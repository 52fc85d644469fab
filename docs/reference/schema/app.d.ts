// Written by `holdfast schema --format typescript`.
// Integers are numbers, exact up to 2^53.  Text in base64 is a string.

/** Every method, with what it takes and gives. */
export interface Calls {
  /** Begin the conversation. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Start a process. The answer comes once it runs, before any of its output. */
  "process/spawn": { params: SpawnParams; result: Nothing };
  /** Offer bytes to stdin, close it, or both. */
  "process/writeStdin": { params: ProcessWriteParams; result: Nothing };
  /** Give a terminal another size. */
  "process/resizePty": { params: ProcessResizeParams; result: Nothing };
  /** Kill a process; its result follows. */
  "process/kill": { params: ProcessKillParams; result: Nothing };
  /** Run a command. The answer comes when it is over. */
  "command/exec": { params: ExecParams; result: ExecResult };
  /** Offer bytes to stdin, close it, or both. */
  "command/exec/write": { params: CommandWriteParams; result: Nothing };
  /** Give a terminal another size. */
  "command/exec/resize": { params: CommandResizeParams; result: Nothing };
  /** Kill a process; its result follows. */
  "command/exec/terminate": { params: CommandTerminateParams; result: Nothing };
}

/** What the client may tell. */
export interface ClientNotifications {
  /** Changes nothing: the answer to `initialize` is enough. */
  "initialized": unknown;
}

/** What the server tells. */
export interface ServerNotifications {
  /** Streamed output of a process. */
  "process/outputDelta": ProcessDelta;
  /** A process is over; its name can be used again. */
  "process/exited": ProcessExited;
  /** Streamed output of a command. */
  "command/exec/outputDelta": CommandDelta;
}

/** Chosen by the client. */
export type RequestId = string | number;

export type Method = keyof Calls;

export type Params<M extends Method> = Calls[M]["params"];

export type Result<M extends Method> = Calls[M]["result"];

export type Request<M extends Method = Method> = {
  [N in M]: { id: RequestId; method: N; trace?: TraceContext | null } & Pick<Calls[N], "params">;
}[M];

export interface Answer<M extends Method = Method> {
  id: RequestId;
  result: Result<M>;
}

export interface ErrorAnswer {
  id: RequestId;
  error: ErrorBody;
}

export type ClientNotification = {
  [N in keyof ClientNotifications]: { method: N; params?: ClientNotifications[N] };
}[keyof ClientNotifications];

export type ServerNotification = {
  [N in keyof ServerNotifications]: { method: N; params: ServerNotifications[N]; emittedAtMs: number };
}[keyof ServerNotifications];

export interface InitializeParams {
  clientInfo: ClientInfo;
  capabilities?: Capabilities | null;
}

export interface ClientInfo {
  name: string;
  version: string;
  title?: string | null;
}

/** What the client can do and wants; members that concern other products are passed over. */
export interface Capabilities {
  /** Needed for `process/...` and for `permissionProfile`. Default: `false`. */
  experimentalApi?: boolean;
  /** Notifications that are not to be sent. */
  optOutNotificationMethods?: string[] | null;
}

export interface SpawnParams {
  /** Program and arguments. */
  command: string[];
  /** The client's name for the process, within its connection; not empty. */
  processHandle: string;
  /** An absolute path. */
  cwd: string;
  /** A terminal instead of pipes; its output is streamed and it can be written to. Default: `false`. */
  tty?: boolean;
  /** Let the client write to stdin. Default: `false`. */
  streamStdin?: boolean;
  /** Tell output as it comes, instead of with the result. Default: `false`. */
  streamStdoutStderr?: boolean;
  /** In bytes per stream; 1 MiB if absent, null for no cap. */
  outputBytesCap?: number | null;
  /** In milliseconds; 10,000 if absent, null for no timeout. */
  timeoutMs?: number | null;
  /** Laid over the server's environment; null takes a variable away. */
  env?: Record<string, string | null> | null;
  /** Of the terminal; 24 rows and 80 columns if absent or null. */
  size?: ProcessSize | null;
}

export interface ProcessSize {
  rows: number;
  cols: number;
}

export interface ProcessWriteParams {
  processHandle: string;
  /** Bytes for stdin, in base64 with padding. */
  deltaBase64?: string | null;
  /** End-of-file, after the bytes. Default: `false`. */
  closeStdin?: boolean;
}

export interface ProcessResizeParams {
  processHandle: string;
  size: ProcessSize;
}

export interface ProcessKillParams {
  processHandle: string;
}

export interface ExecParams {
  /** Program and arguments. */
  command: string[];
  /** The client's name for it, within its connection; needed for `tty` and streaming. */
  processId?: string | null;
  /** A terminal instead of pipes; its output is streamed and it can be written to. Default: `false`. */
  tty?: boolean;
  /** Let the client write to stdin. Default: `false`. */
  streamStdin?: boolean;
  /** Tell output as it comes, instead of with the result. Default: `false`. */
  streamStdoutStderr?: boolean;
  /** In bytes per stream; 1 MiB if absent or null. */
  outputBytesCap?: number | null;
  /** No cap; not together with `outputBytesCap`. Default: `false`. */
  disableOutputCap?: boolean;
  /** No timeout; not together with `timeoutMs`. Default: `false`. */
  disableTimeout?: boolean;
  /** In milliseconds; 10,000 if absent or null. */
  timeoutMs?: number | null;
  /** Relative to the server's directory; `~` is the home of its user. */
  cwd?: string | null;
  /** Laid over the server's environment; null takes a variable away. */
  env?: Record<string, string | null> | null;
  /** Of the terminal; 24 rows and 80 columns if absent or null. */
  size?: CommandSize | null;
  /** What it may do; without one, and without a profile, what the server's `--command-sandbox` says. */
  sandboxPolicy?: DangerFullAccess | ReadOnly | ExternalSandbox | WorkspaceWrite | null;
  /** `:read-only`, `:workspace` or `:danger-full-access`; not together with `sandboxPolicy`. */
  permissionProfile?: string | null;
}

export interface CommandSize {
  rows: number;
  cols: number;
}

/** Everything: no sandbox. */
export interface DangerFullAccess {
  type: "dangerFullAccess";
}

export interface ReadOnly {
  type: "readOnly";
  /** Default: `false`. */
  networkAccess?: boolean;
}

/** The client says that another sandbox is around the server already. */
export interface ExternalSandbox {
  type: "externalSandbox";
  /** Default: `"restricted"`. */
  networkAccess?: NetworkAccess;
}

export type NetworkAccess = "restricted" | "enabled";

export interface WorkspaceWrite {
  type: "workspaceWrite";
  /** Default: `[]`. */
  writableRoots?: string[];
  /** Default: `false`. */
  networkAccess?: boolean;
  /** Default: `false`. */
  excludeTmpdirEnvVar?: boolean;
  /** Default: `false`. */
  excludeSlashTmp?: boolean;
}

export interface CommandWriteParams {
  processId: string;
  /** Bytes for stdin, in base64 with padding. */
  deltaBase64?: string | null;
  /** End-of-file, after the bytes. Default: `false`. */
  closeStdin?: boolean;
}

export interface CommandResizeParams {
  processId: string;
  size: CommandSize;
}

export interface CommandTerminateParams {
  processId: string;
}

export interface InitializeResult {
  /** Server, host and client, in one line. */
  userAgent: string;
  /** A directory of the server's user; nothing is kept there. */
  codexHome: string;
  /** `unix`. */
  platformFamily: string;
  /** `linux`. */
  platformOs: string;
}

/** `{}`. */
export interface Nothing {}

export interface ExecResult {
  /** 128 + n after death by signal n; 124 after the timeout. */
  exitCode: number;
  /** As text, up to the cap; empty if it was streamed. */
  stdout: string;
  /** What came on stderr; empty with a terminal. */
  stderr: string;
  /** Present and true if output was cut below what the client had asked for. */
  stdoutCapReached?: boolean;
  /** Present and true if stderr was cut below what the client had asked for. */
  stderrCapReached?: boolean;
}

/** Streamed output of a process. */
export interface ProcessDelta {
  processHandle: string;
  /** `stdout` or `stderr`; a terminal has `stdout` only. */
  stream: string;
  /** The bytes, in base64. */
  deltaBase64: string;
  /** Nothing of this stream follows: the cap is reached. */
  capReached: boolean;
}

/** A process is over; its name can be used again. */
export interface ProcessExited {
  processHandle: string;
  /** 128 + n after death by signal n; 124 after the timeout. */
  exitCode: number;
  /** Whether the output was cut short because somebody held it open. */
  outputDrainTimedOut: boolean;
  /** As text, up to the cap; empty if it was streamed. */
  stdout: string;
  /** Whether the cap is reached. */
  stdoutCapReached: boolean;
  /** What came on stderr; empty with a terminal. */
  stderr: string;
  /** Whether stderr had more than the cap allows. */
  stderrCapReached: boolean;
}

/** Streamed output of a command. */
export interface CommandDelta {
  processId: string;
  /** `stdout` or `stderr`; a terminal has `stdout` only. */
  stream: string;
  /** The bytes, in base64. */
  deltaBase64: string;
  /** Nothing of this stream follows: the cap is reached. */
  capReached: boolean;
}

/** The caller's trace (W3C). */
export interface TraceContext {
  traceparent?: string | null;
  tracestate?: string | null;
}

/** An error, as an answer carries it. */
export interface ErrorBody {
  code: number;
  message: string;
  data?: unknown;
}
