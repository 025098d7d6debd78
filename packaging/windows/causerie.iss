; The installer for Windows, made by Inno Setup 6 (scripts/windows_package.py hands the version in).
; For one user and without an administrator: start menu, the causerie: scheme, and an uninstaller
; that never touches profiles, which lie in %LOCALAPPDATA%\causerie.

#ifndef Version
  #error The version is handed in: iscc /DVersion=…
#endif

[Setup]
AppId={{0C6C3A52-6C0B-4E59-9E0C-6F1C2B7D41A5}
AppName=Causerie
AppVersion={#Version}
AppVerName=Causerie {#Version}
AppPublisher=The Causerie contributors
VersionInfoVersion={#Version}
DefaultDirName={localappdata}\Programs\Causerie
PrivilegesRequired=lowest
DisableProgramGroupPage=yes
DisableDirPage=auto
MinVersion=10.0.17763
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
OutputDir=..\..\dist
OutputBaseFilename=causerie-{#Version}-windows-x64
SetupIconFile=..\..\assets\icon.ico
UninstallDisplayIcon={app}\causerie.exe
UninstallDisplayName=Causerie
Compression=lzma2/max
SolidCompression=yes
WizardStyle=modern
; A window that is open is asked to close, since its files cannot be replaced.
CloseApplications=yes
RestartApplications=no
ChangesAssociations=yes
#ifdef Signed
SignTool=causerie
SignedUninstaller=yes
#endif

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"
Name: "fr"; MessagesFile: "compiler:Languages\French.isl"

[InstallDelete]
; Libraries of the version before, which the new one may not have.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "..\..\dist\causerie\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs
Source: "..\..\LICENSE-MIT"; DestDir: "{app}"; Flags: ignoreversion
Source: "..\..\LICENSE-APACHE"; DestDir: "{app}"; Flags: ignoreversion

[Icons]
Name: "{userprograms}\Causerie"; Filename: "{app}\causerie.exe"; AppUserModelID: "chat.causerie.Causerie"

[Registry]
Root: HKCU; Subkey: "Software\Classes\causerie"; ValueType: string; ValueName: ""; ValueData: "URL:Causerie"; Flags: uninsdeletekey
Root: HKCU; Subkey: "Software\Classes\causerie"; ValueType: string; ValueName: "URL Protocol"; ValueData: ""
Root: HKCU; Subkey: "Software\Classes\causerie\DefaultIcon"; ValueType: string; ValueName: ""; ValueData: """{app}\causerie.exe"",0"
Root: HKCU; Subkey: "Software\Classes\causerie\shell\open\command"; ValueType: string; ValueName: ""; ValueData: """{app}\causerie.exe"" ""%1"""
; Written by Settings, "Start with the session" of the default profile.
Root: HKCU; Subkey: "Software\Microsoft\Windows\CurrentVersion\Run"; ValueType: none; ValueName: "chat.causerie.Causerie"; Flags: dontcreatekey uninsdeletevalue

[Run]
Filename: "{app}\causerie.exe"; Description: "{cm:LaunchProgram,Causerie}"; Flags: nowait postinstall skipifsilent
