extension BluetoothError {
    /// The name of the ATT error; `nil` for other errors and for the application's own codes.
    ///
    /// Core Specification, Vol 3, Part F, "Error Response"; Core Specification Supplement, Part B, "Common Profile
    /// and Service Error Codes".
    public var attErrorName: String? {
        guard case .att(let code) = kind else { return nil }
        return Self.attErrorNames[code]
    }

    private static let attErrorNames: [UInt8: String] = [
        0x01: "Invalid Handle",
        0x02: "Read Not Permitted",
        0x03: "Write Not Permitted",
        0x04: "Invalid PDU",
        0x05: "Insufficient Authentication",
        0x06: "Request Not Supported",
        0x07: "Invalid Offset",
        0x08: "Insufficient Authorization",
        0x09: "Prepare Queue Full",
        0x0A: "Attribute Not Found",
        0x0B: "Attribute Not Long",
        0x0C: "Encryption Key Size Too Short",
        0x0D: "Invalid Attribute Value Length",
        0x0E: "Unlikely Error",
        0x0F: "Insufficient Encryption",
        0x10: "Unsupported Group Type",
        0x11: "Insufficient Resources",
        0x12: "Database Out Of Sync",
        0x13: "Value Not Allowed",
        0xFC: "Write Request Rejected",
        0xFD: "Client Characteristic Configuration Descriptor Improperly Configured",
        0xFE: "Procedure Already in Progress",
        0xFF: "Out of Range",
    ]
}

extension BluetoothError.Kind {
    /// The specific kind of an ATT error, if there is one.
    public init(att code: UInt8) {
        self =
            switch code {
            case 0x01, 0x0A: .unknownAttribute
            case 0x02, 0x03: .notPermitted
            case 0x05, 0x08, 0x0C, 0x0F: .authentication
            case 0x06: .notSupported
            case 0x07: .invalidOffset
            case 0x0D: .invalidLength
            default: .att(code)
            }
    }
}
