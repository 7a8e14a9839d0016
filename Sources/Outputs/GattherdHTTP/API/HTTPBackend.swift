package import GattherdLog
package import GattherdModel

/// The gateway as the HTTP API sees it: status, stored records, commands.
package protocol HTTPBackend: Sendable {
    /// Returns the current status.
    func status() async -> DaemonStatus
    /// Connects the device on request.
    func connect(_ device: String) async throws(ControlError)
    /// Disconnects the device on request; it stays disconnected after a restart.
    func disconnect(_ device: String) async throws(ControlError)
    /// Sets a control and waits for the result.
    func set(_ request: ControlRequest) async -> Result<ControlValue, ControlError>
    /// Returns the error as text for users.
    func words(for error: ControlError) -> String
    /// Returns samples or summaries: `{"rows":[…],"next":…}`, where `next` is the start of the next page or null.
    func history(_ query: RecordQuery) async -> Result<[UInt8], RecordQueryError>
    /// Returns the newest events as an array, oldest first.
    func events(_ query: RecordQuery) async -> Result<[UInt8], RecordQueryError>
    /// Returns the newest rejects as an array, oldest first.
    func rejects(_ query: RecordQuery) async -> Result<[UInt8], RecordQueryError>
    /// Counters that are not part of the status.
    var counters: [Counter] { get }
    /// True if the metrics include the newest samples.
    var showsSamples: Bool { get }
    /// The wall clock.
    var now: Timestamp { get }
}
