import GattherdGateway

/// The failure of a command: an exit code of sysexits.h and a message for standard error.
struct CommandFailure: Error {
    enum Code: Int32 {
        case general = 1
        case usage = 64
        case data = 65
        case noInput = 66
        case unavailable = 69
        case software = 70
        case cannotCreate = 73
        case inputOutput = 74
        case configuration = 78
    }

    let code: Code
    /// The message, printed as it is; `nil` if everything is already printed.
    let message: String?

    init(_ code: Code, _ message: String?) {
        self.code = code
        self.message = message
    }

    init(_ error: GatewayError) {
        switch error.kind {
        case .configuration: self.init(.configuration, error.message)
        case .cannotCreate: self.init(.cannotCreate, error.message)
        case .inputOutput: self.init(.inputOutput, error.message)
        }
    }
}
