import CSQLite
import GattherdSync

/// Copies a large WAL into the database on a thread and a connection of its own.
///
/// A copy of gigabytes takes minutes, in which the writer must store readings.
final class WALCopy: Sendable {
    struct State: Equatable, Sendable {
        var isRunning = false
        /// The number of pages at the start of the WAL that the last copy left in the database.
        var copied = 0
        /// The number of times that the WAL has restarted.
        fileprivate var restarts = 0
    }

    let state = LatestValue(State())
    private let path: String
    private let file: OpenDatabases.File?

    /// - Parameter connection: The writer's connection.
    init(_ connection: SQLiteConnection) {
        (path, file) = (connection.path, connection.file)
    }

    /// Records that the WAL has restarted.
    func didRestart() {
        state.update { state in
            state.copied = 0
            state.restarts += 1
        }
    }

    /// Starts a copy, as far as readers permit, unless one is running.
    func start() {
        let before = state.state
        guard let file, !before.isRunning else { return }
        state.update { $0.isRunning = true }
        let hasStarted = NamedThread.start(name: "history copy") { [state, path] in
            let copied = Self.copy(path, file)
            state.update { state in
                state.isRunning = false
                // The pages of a WAL that has restarted meanwhile are others.
                if state.restarts == before.restarts { state.copied = copied }
            }
        }
        if !hasStarted { state.update { $0.isRunning = false } }
    }

    /// Copies the WAL; returns the number of pages that are in the database.
    private static func copy(_ path: String, _ file: OpenDatabases.File) -> Int {
        guard let connection = try? SQLiteConnection(path: path, flags: SQLITE_OPEN_READWRITE) else { return 0 }
        connection.keepsWALOnClose(true)
        // Another program may have replaced the database, and left its WAL there. SQLite opens the WAL to read.
        guard connection.file == file, (try? connection.integer("PRAGMA user_version")) != nil else { return 0 }
        return connection.copyWAL()
    }
}
