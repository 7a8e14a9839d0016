package import GattherdConfig
import GattherdDaemon
import GattherdHistory
import GattherdSync
import Glibc

extension Configuration {
    /// Returns the reasons for which a daemon with the rights of this process would not start.
    ///
    /// Files that outputs and `http` name are among ``secretFindings``.
    ///
    /// - Parameter path: The history that a running daemon has open. Only its folder is examined, because the daemon
    ///   itself knows how well it can write there.
    /// - Returns: Errors about `history.path`.
    package func startFindings(historyInUse path: String? = nil) -> [ConfigError] {
        let folder = HistoryFolder(of: history.path.value)
        if let problem = folder.absence { return [finding(problem.description)] }
        guard history.path.value != path else { return [] }
        let file = HistoryFileProblem(path: history.path.value).flatMap { problem in
            problem.preventsStart ? "\(problem.text); \(problem.remedy)" : nil
        }
        let socket = ControlSocket.problem(ofPath: controlSocketPath)
        return [folder.restriction?.description, file, socket].compactMap(\.self).map { finding($0) }
    }

    private func finding(_ text: String) -> ConfigError { ConfigError(.file(text), about: history.path) }
}

/// The folder of history, without which the daemon does not start.
package struct HistoryFolder {
    /// A reason for which the folder cannot be used, and the remedy.
    package struct Problem: Hashable {
        package let text: String
        package let remedy: String
        /// True if the folder does not exist.
        package let isMissing: Bool

        package var description: String { "\(text); \(remedy)" }
    }

    /// The path of the folder.
    package let path: String
    private let database: String

    /// - Parameter history: The path of the database; links lead to the folder of the file itself.
    package init(of history: String) {
        database = DatabaseName.resolved(history)
        path = database.parentFolder
    }

    /// The reason for which there is no such folder for this process; `nil` if there is one.
    package var absence: Problem? {
        guard unsafe access(path + "/.", F_OK) != 0 else { return nil }
        let error = SystemError.current
        let isMissing = error.code == ENOENT
        let remedy = isMissing ? "run: mkdir -p '\(path)', or correct history.path" : "correct history.path"
        let text = "history's folder '\(path)' cannot be used: \(error)"
        return Problem(text: text, remedy: remedy, isMissing: isMissing)
    }

    /// The reason for which this process cannot write the database or files beside it; `nil` if it can.
    package var restriction: Problem? {
        guard let (name, error) = obstacle else { return nil }
        let remedy =
            error.code == EROFS
            ? "mount it writable, or add ReadWritePaths=\(path) to the service's unit; or correct history.path"
            : "let the daemon's user write there, or correct history.path"
        return Problem(text: "'\(name)' cannot be written: \(error)", remedy: remedy, isMissing: false)
    }

    private var obstacle: (name: String, error: SystemError)? {
        if unsafe access(path, W_OK | X_OK) != 0 { return (path, SystemError.current) }
        guard unsafe access(database, R_OK | W_OK) != 0 else { return nil }
        let error = SystemError.current
        return error.code == ENOENT ? nil : (database, error)
    }
}
