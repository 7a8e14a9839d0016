import CSQLite
import GattherdModel

extension Statement {
    func isNull(_ column: Int32) -> Bool {
        unsafe sqlite3_column_type(raw, column) == SQLITE_NULL
    }

    func integer(_ column: Int32) -> Int64 {
        unsafe sqlite3_column_int64(raw, column)
    }

    func real(_ column: Int32) -> Double {
        unsafe sqlite3_column_double(raw, column)
    }

    /// The whole text, including everything after a NUL.
    func text(_ column: Int32) -> String {
        guard let start = unsafe sqlite3_column_text(raw, column) else { return "" }
        let count = Int(unsafe sqlite3_column_bytes(raw, column))
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    func optionalText(_ column: Int32) -> String? {
        isNull(column) ? nil : text(column)
    }

    func octets(_ column: Int32) -> [UInt8] {
        guard let start = unsafe sqlite3_column_blob(raw, column) else { return [] }
        let count = Int(unsafe sqlite3_column_bytes(raw, column))
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// A sample's stored value, in which a boolean is 1 or 0.
    func value(_ column: Int32) -> SampleValue {
        switch unsafe sqlite3_column_type(raw, column) {
        case SQLITE_INTEGER: .integer(integer(column))
        case SQLITE_FLOAT: .real(real(column))
        case SQLITE_NULL: .null
        default: .text(text(column))
        }
    }
}
