// Written by `holdfast schema --format typescript`.
// Integers are numbers, exact up to 2^53.  Text in base64 is a string.

/** Every method, with what it takes and gives. */
export interface Calls {
  /** Open or resume a session. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Resume a session, instead of `initialize`, also if another connection has it, which then ends. */
  "session/takeOver": { params: TakeOverParams; result: InitializeResult };
  /** End the session and everything in it; return when that is gone. A new one may be opened then. */
  "session/close": { params?: Record<string, never> | null; result: CloseResult };
  /** What the host is like. */
  "environment/info": { params?: Record<string, never> | null; result: EnvironmentInfo };
  /** A sign of life of the session's side. */
  "environment/status": { params?: Record<string, never> | null; result: StatusResult };
  /** Start a process. The answer is sent before anything the process says. */
  "process/start": { params: StartParams; result: StartResult };
  /** The processes of the session, those that are starting or still kept included. */
  "process/list": { params?: Record<string, never> | null; result: ListResult };
  /** What a process has said, as far as it is kept. */
  "process/read": { params: ReadParams; result: ReadResult };
  /** Wait for the exit of a process. */
  "process/wait": { params: WaitParams; result: WaitResult };
  /** Offer bytes to stdin. A process that nobody knows is an answer here, not an error. */
  "process/write": { params: WriteParams; result: WriteResult };
  /** End the input of a process, after everything that was offered before. */
  "process/closeStdin": { params: CloseStdinParams; result: WriteResult };
  /** Give a terminal another size. */
  "process/resize": { params: ResizeParams; result: Nothing };
  /** Signal a process; nothing happens if there is none. */
  "process/signal": { params: SignalParams; result: Nothing };
  /** End a process and everything it has started, or give up starting it. */
  "process/terminate": { params: TerminateParams; result: TerminateResult };
}

/** What the client may tell. */
export interface ClientNotifications {
  /** The answer to `initialize` has come; other methods may follow. */
  "initialized": unknown;
}

/** What the server tells. */
export interface ServerNotifications {
  /** A process has written something. */
  "process/output": ProcessOutput;
  /** A process has ended; output may follow that somebody else writes. */
  "process/exited": ProcessExited;
  /** A process has ended and so has its output: nothing follows. */
  "process/closed": ProcessClosed;
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
  [N in keyof ServerNotifications]: { method: N; params: ServerNotifications[N] };
}[keyof ServerNotifications];

export interface InitializeParams {
  /** What the client calls itself; for the record. */
  clientName: string;
  /** The session to resume; null opens a new one. */
  resumeSessionId?: string | null;
  /** The version of the extensions that the client knows: 1. It is then told all that they have to tell. */
  holdfast?: number | null;
}

export interface TakeOverParams {
  sessionId: string;
  /** What the client calls itself; for the record. Default: `""`. */
  clientName?: string;
  /** As in `initialize`. */
  holdfast?: number | null;
}

export interface StartParams {
  /** The client's name for the process, within its session. */
  processId: string;
  /** Program and arguments; a bare name is looked up in `PATH` of the child. */
  argv: string[];
  /** A `file:` URI; must be a directory. */
  cwd: string;
  /** The child's variables, or what is laid over those of `envPolicy`. */
  env: Record<string, string>;
  /** A terminal of 24 rows and 80 columns instead of pipes. */
  tty: boolean;
  /** Labels; checked and not used. */
  metadata?: Metadata | null;
  /** What the child inherits; without one, nothing. */
  envPolicy?: EnvPolicy | null;
  /** Refused unless null. */
  shellSnapshot?: ShellSnapshot | null;
  /** A pipe as stdin; otherwise `/dev/null`. A terminal is always writable. Default: `false`. */
  pipeStdin?: boolean;
  /** What the child sees as its own name; the program that runs stays `argv[0]`. */
  arg0?: string | null;
  /** Refused unless null. */
  sandbox?: Sandbox | null;
  /** Refused unless false. Default: `false`. */
  enforceManagedNetwork?: boolean;
  /** Checked and not used. */
  managedNetwork?: ManagedNetwork | null;
  /** Refused unless null. */
  networkProxy?: NetworkProxy | null;
  /** The terminal's; only with `tty`. */
  size?: TerminalSize | null;
  /** End it after so long. */
  timeoutMs?: number | null;
  /** End it when it has neither said nor been given anything for so long. */
  idleTimeoutMs?: number | null;
  /** When it is ended for one of these reasons: SIGTERM first, and the end so much later. */
  graceMs?: number | null;
  /** Close its output so long after its exit, whoever holds it open. */
  drainMs?: number | null;
  /** Output to keep, instead of 1 MiB. */
  retainBytes?: number | null;
  /** End it when it has said more. */
  outputBytesLimit?: number | null;
  /** What it may use. */
  limits?: ResourceLimits | null;
  /** If this very request was made before, answer with the process that it started. Default: `false`. */
  idempotent?: boolean;
}

/** Labels that the client's own records use; we only check them. */
export interface Metadata {
  /** A UUID. */
  threadId?: string | null;
  toolCallId?: string | null;
}

export interface EnvPolicy {
  /** Which of the server's variables the child starts from. */
  inherit: InheritMode;
  /** Do not take away what matches `*KEY*`, `*SECRET*` or `*TOKEN*`. */
  ignoreDefaultExcludes: boolean;
  /** Patterns of names to take away. */
  exclude: string[];
  /** Variables to add. */
  set: Record<string, string>;
  /** Patterns of names to keep; empty keeps all. */
  includeOnly: string[];
}

/** Which of the server's variables a child starts from. */
export type InheritMode = "core" | "all" | "none";

/** Whatever is in it: it is refused as a whole. */
export interface ShellSnapshot {}

/** Whatever is in it: it is refused as a whole. */
export interface Sandbox {}

export interface ManagedNetwork {
  /** Default: `[]`. */
  loopbackPorts?: number[];
  /** Default: `false`. */
  allowLocalBinding?: boolean;
}

/** Whatever is in it: it is refused as a whole. */
export interface NetworkProxy {}

/** Rows and columns of characters, at least 1 each. */
export interface TerminalSize {
  rows: number;
  cols: number;
}

/** What a process and everything it starts may use together; at least 1 each. */
export interface ResourceLimits {
  memoryBytes?: number | null;
  cpuSeconds?: number | null;
  /** At once, the first included. */
  processes?: number | null;
  /** Of each process. */
  openFiles?: number | null;
}

export interface ReadParams {
  processId: string;
  /** Only chunks with a higher number; null is 0. */
  afterSeq?: number | null;
  /** Stop before the chunk that would go over it; the first is given whatever its size. */
  maxBytes?: number | null;
  /** Hold an empty answer back for so long, until there is output, exit or close; null is 0. */
  waitMs?: number | null;
}

export interface WaitParams {
  processId: string;
  /** Wait so long for the exit; null is 0. */
  waitMs?: number | null;
}

export interface WriteParams {
  processId: string;
  /** The bytes, in base64 with padding. */
  chunk: string;
  /** Not empty; the same one is written once. The last 4,096 accepted ones are remembered. */
  writeId: string;
}

export interface CloseStdinParams {
  processId: string;
  /** The same one takes effect once, as with `process/write`. */
  writeId?: string | null;
}

export interface ResizeParams {
  processId: string;
  size: TerminalSize;
}

export interface SignalParams {
  processId: string;
  signal: SignalName;
  /** To everybody that it has started, instead of its process group. */
  tree?: boolean | null;
}

export type SignalName = "interrupt" | "terminate" | "kill" | "hangup" | "quit" | "user1" | "user2" | "stop" | "continue";

export interface TerminateParams {
  processId: string;
  /** SIGTERM first, and the end so much later. If given, what an exited one left behind is ended too. */
  graceMs?: number | null;
}

export interface InitializeResult {
  /** Name it in `resumeSessionId` to come back. */
  sessionId: string;
  environmentInfo: EnvironmentInfo;
}

export interface EnvironmentInfo {
  /** The login shell of the server's user. */
  shell: ShellInfo;
  /** The version of holdfast. */
  executorVersion: string;
  /** `sha256:HEX`, the same for as long as the host's installation. */
  providerId: string;
  /** URI of the server's directory. */
  cwd: string;
  /** URI; absent if there is none. */
  userHomeDir?: string;
  /** `linux`. */
  platformOs: string;
  /** Empty. */
  prependPathDirs: string[];
  /** URIs, from the server's `TMPDIR`; empty if it is not set. */
  temporaryDirectories: string[];
  /** URI of the directory for temporary files. */
  tempDir: string;
  /** Optional features; those of the protocol are all false in this version. */
  capabilities: Capabilities;
}

export interface ShellInfo {
  name: string;
  path: string;
}

/** What this server can do beyond processes; true only if it works. */
export interface Capabilities {
  networkProxyLaunch: boolean;
  networkProxyReviewDomains: boolean;
  credentialMasking: boolean;
  credentialMaskingCustomProviders: boolean;
  capabilityDiscoverySandbox: boolean;
  fsWatchMissing: boolean;
  capabilityDiscoveryV2: boolean;
  environmentConfigRead: boolean;
  httpHeaderEnvVars: boolean;
  sandboxedFileStreaming: boolean;
  fileWriteStreaming: boolean;
  shellSnapshotV2: boolean;
  windowsMxc: boolean;
  linuxRootWritePreservesDevices: boolean;
  linuxApprovedRootWritePreservesRestrictions: boolean;
  holdfast?: Extensions;
}

/** What this server does beyond the protocol. */
export interface Extensions {
  version: number;
  features: string[];
  /** Whether ending a process ends everything it has started, whatever that has done to escape. */
  treeExact: boolean;
}

export interface CloseResult {
  /** Pids of those who could not be ended. */
  survivors: number[];
}

export interface StatusResult {
  /** `ready`. */
  status: string;
}

export interface StartResult {
  processId: string;
  /** `none`. */
  sandboxType: string;
  /** Of an idempotent start: whether the process was there before. */
  existing?: boolean;
  /** For each limit that was asked for, who keeps it: `cgroup`, `rlimit` or `sampled`. */
  limits?: Record<string, string>;
}

export interface ListResult {
  /** In the order in which they were asked for, as many as fit into one message. */
  processes: ListedProcess[];
  /** Told if there are more, which did not fit. */
  more?: boolean;
}

export interface ListedProcess {
  processId: string;
  /** Cut after about 1,024 characters, with `...` as the last element then. */
  argv: string[];
  /** URI. */
  cwd: string;
  tty: boolean;
  /** When it was asked for, in milliseconds since 1970. */
  startedAtMs: number;
  state: State;
  /** Null while it starts. */
  pid: number | null;
  exitCode: number | null;
  outcome: Outcome | null;
  nextSeq: number;
  retainedBytes: number;
}

export type State = "starting" | "running" | "exited" | "closed";

/** How a process ended, and why. */
export interface Outcome {
  kind: Kind;
  /** Null after death by signal. */
  exitCode: number | null;
  /** The signal it died of, as in `SIGKILL`. */
  signal: string | null;
  /** Who ended it: `client` or `limit`. */
  by: string | null;
  /** In words. */
  detail: string | null;
}

/** Why a process ended. */
export type Kind = "exit" | "signal" | "timeout" | "idleTimeout" | "oom" | "outputLimit" | "cpuLimit" | "terminated" | "sandboxDenied" | "lost";

export interface ReadResult {
  /** What is kept, in order. */
  chunks: OutputChunk[];
  /** With `maxBytes` and chunks: one more than the last chunk. Otherwise the number of the next event. */
  nextSeq: number;
  /** Whether the process has ended. */
  exited: boolean;
  /** 128 + n after death by signal n; null while the process runs. */
  exitCode: number | null;
  /** Whether its output has ended too. */
  closed: boolean;
  /** Null. */
  failure: string | null;
  /** False. */
  sandboxDenied: boolean;
  /** What is missing before the first chunk; told if there is anything. */
  gap?: OutputGap | null;
  /** Told of an exited process. A client that does not know the extensions is not told of kind `exit`. */
  outcome?: Outcome;
}

/** Bytes of one stream, with their number. */
export interface OutputChunk {
  seq: number;
  stream: Stream;
  /** The bytes, in base64. */
  chunk: string;
}

/** Where a chunk came from. A terminal has one stream for both outputs. */
export type Stream = "stdout" | "stderr" | "pty";

/** Output that is no longer kept. */
export interface OutputGap {
  fromSeq: number;
  /** The last number of it. */
  toSeq: number;
  /** Null if so much was dropped that nobody knows. */
  bytes: number | null;
}

export interface WaitResult {
  exited: boolean;
  exitCode: number | null;
  outcome: Outcome | null;
  usage: Usage | null;
  /** Pids of those who hold the output of an exited process open, as far as they were seen at its exit. */
  heldBy: number[];
  closed: boolean;
}

/** What a process used, and those whom it had waited for. */
export interface Usage {
  userMs: number;
  systemMs: number;
  /** Of the largest of them. */
  maxRssBytes: number;
}

export interface WriteResult {
  /** `accepted`, `stdinClosed`, `unknownProcess` or `starting`. */
  status: string;
}

/** `{}`. */
export interface Nothing {}

export interface TerminateResult {
  /** Whether there was something to end. */
  running: boolean;
  /** Pids of those who could not be ended. */
  survivors: number[];
  /** Whether everybody whom the process had started was in sight. */
  treeExact: boolean;
}

/** A process has written something. */
export interface ProcessOutput {
  processId: string;
  /** Output, exit and close of a process share one gapless series of numbers. */
  seq: number;
  stream: Stream;
  /** The bytes, in base64; at most 64 KiB of them. */
  chunk: string;
}

/** A process has ended; output may follow that somebody else writes. */
export interface ProcessExited {
  processId: string;
  seq: number;
  /** 128 + n after death by signal n. */
  exitCode: number;
  /** False. */
  sandboxDenied: boolean;
  /** As in the answer to `process/read`. */
  outcome?: Outcome;
  /** Told to clients that know the extensions. */
  usage?: Usage;
  /** Pids of those who hold the output open; told if there are any. */
  heldBy?: number[];
}

/** A process has ended and so has its output: nothing follows. */
export interface ProcessClosed {
  processId: string;
  seq: number;
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
