import GattherdConfig

/// An error at the start, the reload or the end of the gateway.
package struct GatewayError: Error {
    package enum Kind: Sendable {
        /// The configuration, or a file that it names, cannot be used.
        case configuration
        /// The files of the configuration are not read in time.
        case unread
        /// The system refuses the thread that reads the files of the configuration.
        case noThread
        /// History or the control socket cannot be created.
        case cannotCreate
        /// History could not be closed.
        case inputOutput
    }

    package let kind: Kind
    /// The reason and the remedy, for people.
    package let message: String
    /// The message for logs and events: without lines of the configuration, which may have secrets.
    package let summary: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
        summary = message
    }

    /// Creates the error about mistakes in the configuration.
    init(_ errors: ConfigErrors) {
        kind = .configuration
        message = errors.description
        summary = errors.summary
    }
}
