import GattherdSync

/// Ends the daemon so that a supervisor, such as systemd, starts it again.
package final class RestartSwitch: Sendable {
    /// The environment variable by which the supervisor promises to start the daemon again after an end with status 75.
    package static let variable = "GATTHERD_RESTART"
    package static let promise = "on-status-75"

    /// True if the supervisor has made the promise.
    let isOffered: Bool
    private let state = LatestValue(false)

    package init(_ environment: [String: String]) {
        isOffered = environment[Self.variable] == Self.promise
    }

    /// True once a restart is requested.
    package var isRequested: Bool { state.state }

    func request() { state.set(true) }

    /// Returns when a restart is requested, or the task is cancelled.
    package func requested() async {
        for await isRequested in state.watch() where isRequested { return }
    }
}
