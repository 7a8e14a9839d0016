public import GattherdBluetooth
import GattherdSync
import Glibc

/// The pairing rules of a device, and the handling of a lost bond.
public struct DevicePairing: Hashable, Sendable {
    /// The pairing method and its time.
    public enum Method: Hashable, Sendable {
        /// No pairing.
        case never
        /// Just Works, as soon as a request needs encryption.
        case onDemand
        /// Just Works, before the first request.
        case justWorks
        /// Numeric comparison, before the first request; the numbers are confirmed without a check.
        case compare
        /// The passkey in this file, before the first request.
        case passkey(file: String)
    }

    public var method: Method
    /// True to remove a bond that the device has lost and to pair again; false to fail the link until a person removes
    /// it.
    ///
    /// With true, another device with the same address can impersonate the device.
    public var repairsBond: Bool

    public init(_ method: Method = .onDemand, repairsBond: Bool = false) {
        self.method = method
        self.repairsBond = repairsBond
    }
}

extension DevicePairing {
    /// Answers a device that starts pairing during a request.
    func answer(to request: PairingRequest) -> PairingResponse {
        switch method {
        case .never: .rejected("'pairing: never' in the configuration forbids it")
        case .onDemand, .justWorks: PairingMethod.justWorks.answer(to: request)
        case .compare: PairingMethod.compare.answer(to: request)
        case .passkey: .rejected("it must pair with its passkey, right after connecting")
        }
    }
}

/// The reason why a passkey file is unusable: the problem, the path and the remedy.
public struct PinFileError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ path: String, _ problem: String) {
        description = "pin_file '\(path)' \(problem)"
    }
}

/// A file whose first line is the passkey of a device.
public enum PinFile {
    /// Reads the passkey; each pairing reads the file again, so that it can be replaced.
    ///
    /// - Throws: ``PinFileError``, which never contains the content of the file.
    public static func read(_ path: String) throws(PinFileError) -> Passkey {
        // Non-blocking: opening a pipe would wait for a writer.
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            let problem = errno
            throw PinFileError(path, "cannot be read: \(SystemError(problem))\(advice(problem))")
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe Glibc.read(file, &bytes, bytes.count)
        guard count >= 0 else { throw PinFileError(path, "cannot be read; it must be a file") }
        let line = bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        guard let passkey = Passkey(String(decoding: line, as: UTF8.self)) else {
            throw PinFileError(path, "has no passkey; write its six digits into the first line, and nothing else")
        }
        return passkey
    }

    private static func advice(_ problem: Int32) -> String {
        switch problem {
        case ENOENT: "; write the device's six digits into it"
        case EACCES: "; let the user that runs gattherd read it"
        default: ""
        }
    }
}
